package sim

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// The test makes each method of the backend hang at each of its stages. The error names this stage. When another
// World with the same file ends the fault, the method completes.
func TestHangAtEachStage(t *testing.T) {
	errEnough := errors.New("enough")
	verbs := []struct {
		name   string
		stages []backend.Stage
		call   func(context.Context, *Backend, backend.NodeSpec, backend.Progress) error
	}{
		{"Establish", append([]backend.Stage{backend.StageAPIServer}, peerStages...),
			func(ctx context.Context, b *Backend, spec backend.NodeSpec, progress backend.Progress) error {
				return b.Establish(ctx, spec.Attempt.Provider, progress)
			}},
		{"Join", append([]backend.Stage{backend.StageStamp}, joinStages...),
			func(ctx context.Context, b *Backend, spec backend.NodeSpec, progress backend.Progress) error {
				_, err := b.Join(ctx, spec, progress)
				return err
			}},
		{"Drain", []backend.Stage{backend.StageDrain},
			func(ctx context.Context, b *Backend, spec backend.NodeSpec, progress backend.Progress) error {
				return b.Drain(ctx, spec.Attempt, false, progress)
			}},
		{"Leave", []backend.Stage{backend.StageNodeGone, backend.StageSliceGone},
			func(ctx context.Context, b *Backend, spec backend.NodeSpec, progress backend.Progress) error {
				return b.Return(ctx, spec.Attempt, progress)
			}},
		{"Unpeer", unpeerStages,
			func(ctx context.Context, b *Backend, spec backend.NodeSpec, progress backend.Progress) error {
				return b.RemovePeering(ctx, spec.Attempt.Provider, progress)
			}},
	}
	for i, verb := range verbs {
		for _, stage := range verb.stages {
			t.Run(fmt.Sprintf("%s/%s", verb.name, stage), func(t *testing.T) {
				w := open(t, filepath.Join(t.TempDir(), "world.json"), Delays{})
				other := open(t, w.Path(), Delays{})
				b, spec := New(w, testOptions), nodeSpec("group-a-1", 1, provider(t, w, "one"))
				for _, before := range verbs[:i] {
					require.NoError(t, before.call(bounded(t), b, spec, nil))
				}
				require.NoError(t, w.SetKnobs(t.Context(), "one", Knobs{Hang: stage, Message: "on holiday"}))
				ctx, cancel := context.WithCancelCause(bounded(t))
				n := 0
				err := verb.call(ctx, b, spec, func(at backend.Stage, _ string) {
					if at == stage {
						if n++; n == 3 {
							cancel(errEnough)
						}
					}
				})
				var at *backend.StageError
				require.ErrorAs(t, err, &at)
				require.Equal(t, stage, at.Stage)
				require.Contains(t, at.Message, "on holiday")
				require.ErrorIs(t, err, errEnough)

				hung, done := make(chan struct{}, 1000), make(chan error, 1)
				go func() {
					done <- verb.call(bounded(t), b, spec, func(backend.Stage, string) { hung <- struct{}{} })
				}()
				<-hung
				require.NoError(t, other.SetKnobs(t.Context(), "one", Knobs{}))
				require.NoError(t, <-done)
			})
		}
	}
}

func TestRefusalNamesItsStage(t *testing.T) {
	refuse := func(stage backend.Stage) (*World, *Backend, backend.NodeSpec) {
		w := open(t, filepath.Join(t.TempDir(), "world.json"), Delays{})
		spec := nodeSpec("group-a-1", 1, provider(t, w, "one"))
		require.NoError(t, w.SetKnobs(t.Context(), "one", Knobs{Refuse: stage, Message: "not for you"}))
		return w, New(w, testOptions), spec
	}
	check := func(stage backend.Stage, err error) {
		var at *backend.StageError
		require.ErrorAs(t, err, &at)
		require.Equal(t, stage, at.Stage)
		require.ErrorIs(t, err, backend.ErrDenied)
		require.ErrorContains(t, err, "not for you")
	}
	for _, stage := range peerStages {
		_, b, spec := refuse(stage)
		check(stage, b.Establish(bounded(t), spec.Attempt.Provider, nil))
	}
	for _, stage := range joinStages {
		w, b, spec := refuse(stage)
		require.NoError(t, b.Establish(bounded(t), spec.Attempt.Provider, nil))
		_, err := b.Join(bounded(t), spec, nil)
		check(stage, err)
		require.NoError(t, b.Return(bounded(t), spec.Attempt, nil))
		require.NoError(t, b.RemovePeering(bounded(t), spec.Attempt.Provider, nil))
		require.Zero(t, counts(t, w))
	}
}

// The credentials lead to another provider than the given one. Establish refuses them before it makes any object.
func TestEstablishOtherProvider(t *testing.T) {
	w := open(t, filepath.Join(t.TempDir(), "world.json"), Delays{})
	one, two := provider(t, w, "one"), provider(t, w, "two")
	one.Credentials = two.Credentials
	require.ErrorIs(t, New(w, testOptions).Establish(bounded(t), one, nil), backend.ErrInvalid)
	require.Zero(t, counts(t, w))
}

// A process gave up a RemovePeering halfway. The next Establish still succeeds.
func TestEstablishAfterAnInterruptedRemoval(t *testing.T) {
	w := open(t, filepath.Join(t.TempDir(), "world.json"), Delays{})
	p, b := provider(t, w, "one"), New(w, testOptions)
	require.NoError(t, b.Establish(bounded(t), p, nil))
	require.NoError(t, w.SetKnobs(t.Context(), "one", Knobs{Hang: backend.StageTenantGone}))
	ctx, cancel := context.WithCancel(bounded(t))
	require.Error(t, b.RemovePeering(ctx, p, func(stage backend.Stage, _ string) {
		if stage == backend.StageTenantGone {
			cancel()
		}
	}))
	_, err := b.Join(bounded(t), nodeSpec("group-a-1", 1, p), nil)
	require.ErrorIs(t, err, backend.ErrNotPeered, "no node on a peering that is going")
	require.NoError(t, b.Establish(bounded(t), p, nil))
	_, err = b.Join(bounded(t), nodeSpec("group-a-1", 1, p), nil)
	require.NoError(t, err)
}

// A peering also serves the opposite direction. RemovePeering reports that it is in use.
func TestTwoWayPeeringIsInUse(t *testing.T) {
	w := open(t, filepath.Join(t.TempDir(), "world.json"), Delays{})
	p, b := provider(t, w, "one"), New(w, testOptions)
	require.NoError(t, b.Establish(bounded(t), p, nil))
	bothWays := func(yes bool) {
		require.NoError(t, w.Edit(t.Context(), func(s *State) error {
			s.Consumer.Peerings["one"].BothWays = yes
			return nil
		}))
	}
	bothWays(true)
	require.ErrorIs(t, b.RemovePeering(bounded(t), p, nil), backend.ErrInUse)
	bothWays(false)
	require.NoError(t, b.RemovePeering(bounded(t), p, nil))
}

// A provider has 5 CPUs, and three nodes of 2 CPUs join. Two nodes fit. The third node fits after another one was
// returned.
func TestCapacityIsOfferedOnce(t *testing.T) {
	w := open(t, filepath.Join(t.TempDir(), "world.json"), Delays{})
	p, b := provider(t, w, "one"), New(w, testOptions)
	require.NoError(t, w.AddProvider(t.Context(), "one", corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")}))
	require.NoError(t, b.Establish(bounded(t), p, nil))
	join := func(instance string, number int) error {
		_, err := b.Join(bounded(t), nodeSpec(instance, number, p), nil)
		return err
	}
	require.NoError(t, join("group-a-1", 1))
	require.NoError(t, join("group-a-2", 1))
	err := join("group-a-3", 1)
	require.ErrorIs(t, err, backend.ErrShort)
	require.ErrorContains(t, err, "cpu 1 of 2")
	require.NoError(t, b.Return(bounded(t), nodeSpec("group-a-3", 1, p).Attempt, nil))
	require.NoError(t, b.Return(bounded(t), nodeSpec("group-a-1", 1, p).Attempt, nil))
	require.NoError(t, join("group-a-3", 2))
}

// A provider is cut off, and its Node becomes Unknown. The Node is Ready again when the provider is reachable again.
// Then the Node is deleted; the next Join makes its kubelet register it again and stamps it.
func TestNodesOfACutProviderRecover(t *testing.T) {
	w := open(t, filepath.Join(t.TempDir(), "world.json"), Delays{})
	p, b := provider(t, w, "one"), New(w, testOptions)
	require.NoError(t, b.Establish(bounded(t), p, nil))
	first, err := b.Join(bounded(t), nodeSpec("group-a-1", 1, p), nil)
	require.NoError(t, err)
	require.NoError(t, w.SetKnobs(t.Context(), "one", Knobs{Unreachable: true}))
	require.Equal(t, 0, counts(t, w).Ready)
	require.NoError(t, w.SetKnobs(t.Context(), "one", Knobs{}))
	require.Equal(t, 1, counts(t, w).Ready)
	require.NoError(t, w.DeleteNode(t.Context(), first.Name))
	require.Equal(t, 0, counts(t, w).Nodes)
	second, err := b.Join(bounded(t), nodeSpec("group-a-1", 1, p), nil)
	require.NoError(t, err)
	require.NotEqual(t, first.UID, second.UID)
	require.Equal(t, 1, counts(t, w).Stamped)
}

// Two hubs use the same consumer. Neither hub lists or changes objects of the other hub.
func TestHubsDoNotSeeEachOther(t *testing.T) {
	w := open(t, filepath.Join(t.TempDir(), "world.json"), Delays{})
	p := provider(t, w, "one")
	opts := testOptions
	opts.Hub = "another"
	ours, theirs := New(w, testOptions), New(w, opts)
	require.NoError(t, theirs.Establish(bounded(t), p, nil))
	spec := nodeSpec("group-a-1", 1, p)
	_, err := theirs.Join(bounded(t), spec, nil)
	require.NoError(t, err)
	require.NoError(t, ours.Establish(bounded(t), p, nil))
	_, err = ours.Join(bounded(t), spec, nil)
	require.ErrorIs(t, err, backend.ErrConflict)
	require.NoError(t, ours.Return(bounded(t), spec.Attempt, nil))
	require.NoError(t, ours.RemovePeering(bounded(t), p, nil))
	found, err := ours.List(t.Context(), backend.Scope{})
	require.NoError(t, err)
	require.Empty(t, found)
	require.Equal(t, 1, counts(t, w).Stamped, "theirs is untouched")
}

// Two backends with the same world join and return many nodes concurrently.
func TestManyNodesJoinConcurrently(t *testing.T) {
	const n = 30
	delays := Delays{Peer: 20 * time.Millisecond, Join: 50 * time.Millisecond, Leave: 20 * time.Millisecond}
	w := open(t, filepath.Join(t.TempDir(), "world.json"), delays)
	p := provider(t, w, "one")
	require.NoError(t, w.AddProvider(t.Context(), "one", nil))
	backends := []*Backend{New(w, testOptions), New(open(t, w.Path(), delays), testOptions)}
	ctx := bounded(t)
	all := func(do func(*Backend, backend.NodeSpec) error) {
		var group sync.WaitGroup
		for i := range n {
			group.Go(func() {
				if err := do(backends[i%2], nodeSpec(fmt.Sprintf("group-a-%d", i), 1, p)); err != nil {
					t.Errorf("node %d: %v", i, err)
				}
			})
		}
		group.Wait()
	}
	require.NoError(t, backends[0].Establish(ctx, p, nil))
	all(func(b *Backend, spec backend.NodeSpec) error {
		_, err := b.Join(ctx, spec, nil)
		return err
	})
	require.Equal(t, n, counts(t, w).Stamped)
	all(func(b *Backend, spec backend.NodeSpec) error { return b.Return(ctx, spec.Attempt, nil) })
	require.NoError(t, backends[1].RemovePeering(ctx, p, nil))
	require.Zero(t, counts(t, w))
}
