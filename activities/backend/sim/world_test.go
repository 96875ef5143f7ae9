package sim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/backendtest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

var (
	testOptions = Options{RefusedFor: 2 * time.Second, Poll: 2 * time.Millisecond, Report: 20 * time.Millisecond}
	testShape   = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"),
		corev1.ResourcePods: resource.MustParse("20"),
	}
	testCapacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
)

// open opens the world and sets its delays.
func open(t *testing.T, path string, delays Delays) *World {
	t.Helper()
	w, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, w.SetDelays(t.Context(), delays))
	return w
}

// provider adds a provider with its credentials file to the world.
func provider(t *testing.T, w *World, id string) fleet.Provider {
	t.Helper()
	require.NoError(t, w.AddProvider(t.Context(), id, testCapacity))
	return fleet.Provider{ID: id, Credentials: credentials(t, w, id)}
}

func credentials(t *testing.T, w *World, id string) fleet.Credentials {
	t.Helper()
	path := filepath.Join(t.TempDir(), "credentials.yaml")
	require.NoError(t, os.WriteFile(path, w.Kubeconfig(id), 0o600))
	return fleet.Credentials{KubeconfigFile: path}
}

// harness returns the contract suite's harness for the world.
func harness(t *testing.T, w *World, group, one, two string) backendtest.Harness {
	other, err := Open(w.Path()) // a second handle, like the handle of another process
	require.NoError(t, err)
	knobs := func(k Knobs) func(context.Context, fleet.Provider) (backendtest.Undo, error) {
		return func(ctx context.Context, p fleet.Provider) (backendtest.Undo, error) {
			heal := func(ctx context.Context) error { return other.SetKnobs(ctx, p.ID, Knobs{}) }
			return heal, other.SetKnobs(ctx, p.ID, k)
		}
	}
	shrink := func(ctx context.Context, p fleet.Provider) (backendtest.Undo, error) {
		undo := func(ctx context.Context) error { return other.AddProvider(ctx, p.ID, testCapacity) }
		small := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		return undo, other.AddProvider(ctx, p.ID, small)
	}
	return backendtest.Harness{
		Backend: New(w, testOptions), Other: New(other, testOptions),
		Providers: [2]fleet.Provider{provider(t, w, one), provider(t, w, two)},
		Shape:     testShape, Group: group, Bound: time.Minute, Prompt: time.Minute, Pass: 25 * time.Millisecond,
		RefusedFor: testOptions.RefusedFor,
		World: backendtest.World{
			Objects: func(context.Context) ([]backendtest.Object, error) { return objects(other) },
			Node: func(_ context.Context, name string) (*corev1.Node, error) {
				s, err := other.Snapshot()
				if err != nil {
					return nil, err
				}
				if node := s.Consumer.Nodes[name]; node != nil {
					return node, nil
				}
				return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, name)
			},
			PutPod: func(ctx context.Context, node string, pod backendtest.Pod) error {
				return other.PutPod(ctx, node, Pod(pod))
			},
			Pods: func(_ context.Context, node string) ([]string, error) {
				s, err := other.Snapshot()
				if err != nil {
					return nil, err
				}
				var names []string
				for _, pod := range s.Consumer.Pods[node] {
					names = append(names, pod.Name)
				}
				return names, nil
			},
			PutSlice: func(ctx context.Context, p fleet.Provider, name string) (backendtest.Undo, error) {
				undo := func(ctx context.Context) error { return other.RemoveForeignSlice(ctx, p.ID, name) }
				return undo, other.PutForeignSlice(ctx, p.ID, name)
			},
			PutNode: func(ctx context.Context, name string) (backendtest.Undo, error) {
				undo := func(ctx context.Context) error { return other.DeleteNode(ctx, name) }
				return undo, other.PutForeignNode(ctx, name)
			},
			PutPeering: func(ctx context.Context, p fleet.Provider) (backendtest.Undo, error) {
				undo := func(ctx context.Context) error { return other.RemoveForeignPeering(ctx, p.ID) }
				return undo, other.PutForeignPeering(ctx, p.ID)
			},
			DeleteNode: func(ctx context.Context, a fleet.Attempt) error { return other.DeleteNode(ctx, a.ObjectName()) },
			DeleteVirtualNode: func(ctx context.Context, a fleet.Attempt) error {
				return other.DeleteVirtualNode(ctx, a.ObjectName())
			},
			DeleteSlice: func(ctx context.Context, a fleet.Attempt) error { return other.DeleteSlice(ctx, a.ObjectName()) },
			SliceThere: func(_ context.Context, a fleet.Attempt) (map[string]string, error) {
				s, err := other.Snapshot()
				if err != nil {
					return nil, err
				}
				return s.RemoteSlices[remoteKey(a.Provider.ID, a.ObjectName())].Annotations, nil
			},
			SetProviderID: func(ctx context.Context, node, id string) error {
				return other.Edit(ctx, func(s *State) error {
					s.Consumer.Nodes[node].Spec.ProviderID = id
					return nil
				})
			},
			Unreachable: func(t *testing.T, secret string) fleet.Credentials { return credentials(t, w, secret) },
			Stall:       knobs(Knobs{Hang: backend.StageTenant}), StallStage: backend.StageTenant,
			Cut: knobs(Knobs{Unreachable: true}),
			Deny: func(ctx context.Context, p fleet.Provider) (backendtest.Undo, error) {
				undo := func(ctx context.Context) error { return other.Close(ctx, p.ID, "") }
				return undo, other.Close(ctx, p.ID, fleet.RefusingCordoned)
			},
			Forget: func(ctx context.Context, p fleet.Provider) error { return w.ForgetPeering(ctx, p.ID) },
			Close: func(ctx context.Context, p fleet.Provider, kind fleet.RefusingKind) (backendtest.Undo, error) {
				return func(ctx context.Context) error { return other.Close(ctx, p.ID, "") }, other.Close(ctx, p.ID, kind)
			},
			Shrink: shrink, Fill: shrink,
		},
	}
}

func objects(w *World) ([]backendtest.Object, error) {
	s, err := w.Snapshot()
	if err != nil {
		return nil, err
	}
	var list []backendtest.Object
	add := func(where, kind, name string, o Object) {
		if !foreign(o.Labels) {
			list = append(list, backendtest.Object{Where: where, Provider: o.Provider, Kind: kind, Name: name, UID: o.UID,
				Refusal: o.Labels[backend.LabelRefused] != ""})
		}
	}
	for id, o := range s.Consumer.Peerings {
		add("consumer", "peering", id, o.Object)
	}
	for id, o := range s.Consumer.Refused {
		add("consumer", "refusal", id, o.Object)
	}
	for name, o := range s.Consumer.Slices {
		add("consumer", "slice", name, o.Object)
	}
	for name, o := range s.Consumer.Virtuals {
		add("consumer", "virtual node", name, *o)
	}
	for name, o := range s.Consumer.Nodes {
		add("consumer", "node", name, Object{
			UID: string(o.UID), Provider: o.Labels["liqo.io/remote-cluster-id"], Labels: o.Labels,
		})
	}
	for id, p := range s.Providers {
		if p.Tenant != nil {
			add(id, "tenant", "consumer", *p.Tenant)
		}
	}
	for key, o := range s.RemoteSlices {
		add(o.Provider, "slice", strings.TrimPrefix(key, o.Provider+"/"), o.Object)
	}
	return list, nil
}

func TestContract(t *testing.T) {
	for name, delays := range map[string]Delays{
		"no delays": {},
		"delays": {
			Peer: 100 * time.Millisecond, Join: 100 * time.Millisecond,
			Leave: 40 * time.Millisecond, Unpeer: 40 * time.Millisecond, Register: 40 * time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, filepath.Join(t.TempDir(), "world.json"), delays)
			backendtest.Run(t, harness(t, w, "contract", "one", "two"))
			s, err := w.Snapshot()
			require.NoError(t, err)
			require.Zero(t, s.Counts(), fmt.Sprintf("%+v", s.Counts()))
		})
	}
}
