package microvm

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// scene is a host with a peering.
type scene struct {
	*testHost
	b *Backend
	p fleet.Provider
}

func newScene(t *testing.T) *scene {
	cluster := newCluster()
	h := newTestHost(t, cluster, "host1")
	s := &scene{testHost: h, b: newBackend(testConfig, cluster), p: h.provider(t)}
	require.NoError(t, s.b.Establish(bounded(t), s.p, nil))
	return s
}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func (s *scene) spec() backend.NodeSpec {
	group := fleet.InstanceSpec{ID: "g", Shape: testShape, Nodes: fleet.NodesMachine,
		Taints: []corev1.Taint{{Key: "own", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}}
	return backend.NodeSpec{Attempt: fleet.Attempt{Group: "g", Instance: "g-e-1", Number: 1, Provider: s.p},
		Shape: testShape, Labels: group.NodeLabels(), Taints: group.NodeTaints(), Booking: fleet.Booking{Spec: group}}
}

func (s *scene) join(t *testing.T) error {
	_, err := s.b.Join(bounded(t), s.spec(), nil)
	return err
}

// A host sends too much data, an unreadable answer, or a redirect. The backend reports an error that contains no
// secret and has a bounded length.
func TestHostileAnswersAreReported(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the user data was sent elsewhere: %s %s", r.Method, r.URL)
	}))
	t.Cleanup(elsewhere.Close)
	announce := func(size int) func(http.ResponseWriter, *http.Request) bool { // the content itself is not sent
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Length", strconv.Itoa(size))
			return true
		}
	}
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		want   error
	}{
		"more than 4 MiB in the answer about its identity": {announce(maxIdentity + 1), backend.ErrInvalid},
		"a page": {func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte("<p>" + hostToken))
			return true
		}, backend.ErrUnreachable},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
			return true
		}, backend.ErrUnreachable},
		"another token": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusForbidden)
			return true
		}, backend.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.behaves(behaviour{answer: c.answer})
			_, err := s.b.Identify(bounded(t), s.p.Credentials)
			require.ErrorIs(t, err, c.want)
			require.NotContains(t, err.Error(), hostToken)
			require.Less(t, len(err.Error()), 2*maxWords)
		})
	}
	t.Run("more than 16 MiB", func(t *testing.T) {
		s := newScene(t)
		s.behaves(behaviour{answer: announce(maxAnswer + 1)})
		_, err := s.b.Observe(bounded(t), s.p)
		require.ErrorIs(t, err, backend.ErrInvalid)
	})
	t.Run("more than it said", func(t *testing.T) {
		s := newScene(t)
		h, err := s.b.open(bounded(t), s.p.Credentials)
		require.NoError(t, err)
		s.behaves(behaviour{answer: func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush() // no length is announced
			_, _ = w.Write(bytes.Repeat([]byte(" "), 1001))
			return true
		}})
		require.ErrorIs(t, h.read(bounded(t), nil, 1000, "hostgroup"), backend.ErrInvalid)
		require.NoError(t, h.read(bounded(t), nil, 1001, "hostgroup"))
	})
	t.Run("a redirect of the user data", func(t *testing.T) {
		s := newScene(t)
		s.behaves(behaviour{answer: func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
			}
			return r.Method == http.MethodPost
		}})
		ctx, stop := context.WithCancel(bounded(t))
		n := 0
		_, err := s.b.Join(ctx, s.spec(), func(backend.Stage, string) {
			if n++; n > 3 {
				stop()
			}
		})
		require.ErrorIs(t, err, backend.ErrUnreachable)
	})
}

// The context of a wait ends, and the interrupted request returns the same reason as the context. The error contains
// this reason only once.
func TestErrorReportsItsReasonOnce(t *testing.T) {
	s := newScene(t)
	s.behaves(behaviour{answer: func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}})
	over := errors.New("the pass is over")
	ctx, cancel := context.WithTimeoutCause(t.Context(), noAnswer+noAnswer/2, over)
	defer cancel()
	err := s.b.Establish(ctx, s.p, nil)
	require.ErrorIs(t, err, over)
	require.ErrorIs(t, err, backend.ErrUnreachable)
	require.Equal(t, 1, strings.Count(err.Error(), over.Error()), err)
	require.ErrorContains(t, err, "does not answer: no answer")
}

// A host answers 401 or 403. This only shows that it refuses our token: no machine counts as lost.
func TestRefusedTokenLosesNoMachine(t *testing.T) {
	s := newScene(t)
	require.NoError(t, s.join(t))
	document := s.document()
	document["token"] = "revoked"
	s.p.Credentials = credentialsFile(t, document)
	seen, err := s.b.Observe(bounded(t), s.p)
	require.ErrorIs(t, err, backend.ErrCredentials)
	require.Zero(t, seen)
}

// A host refuses with a long message that contains our token. The backend shortens the message and removes the token.
// It ignores a refusal of an unknown kind.
func TestRefusalMessagesAreCut(t *testing.T) {
	s := newScene(t)
	s.behaves(behaviour{refuses: fleet.RefusingCordoned, reason: hostToken + strings.Repeat("ä", 2*maxWords)})
	refusal, err := s.b.Refusal(bounded(t), s.p)
	require.NoError(t, err)
	require.NotContains(t, refusal.Reason, hostToken)
	require.Len(t, []rune(refusal.Reason), maxWords)
	for _, kind := range []fleet.RefusingKind{fleet.RefusingRemoved, "Nonsense"} {
		s.behaves(behaviour{refuses: kind, reason: "because"})
		seen, err := s.b.Observe(bounded(t), s.p)
		require.NoError(t, err)
		require.Zero(t, seen)
	}
}

// A host lists a machine whose name, used in a URL, leads to another path. The backend sends no request to delete
// this machine.
func TestMachineNamesCannotLeadToOtherPaths(t *testing.T) {
	s := newScene(t)
	require.NoError(t, s.join(t))
	s.mu.Lock()
	for name, m := range s.machines {
		delete(s.machines, name)
		m.Hostname = "../../another/nodes/precious"
		s.machines[m.Hostname] = m
	}
	s.mu.Unlock()
	_, err := s.b.Observe(bounded(t), s.p)
	require.ErrorIs(t, err, backend.ErrInvalid)
	ctx, stop := context.WithCancel(bounded(t))
	err = s.b.Return(ctx, s.spec().Attempt, func(stage backend.Stage, message string) {
		if stage == backend.StageSliceGone && strings.Contains(message, "name that is none") {
			stop()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"POST /hostgroup/host1/nodes"}, s.changes())
}

// When an answer is lost, or a host lists a machine late or twice, the backend still makes only one machine.
func TestLostAnswersLeadToOneMachine(t *testing.T) {
	var s *scene
	const name = "lca-g-e-1-1"
	for _, b := range []behaviour{{late: 4}, {lost: true}} {
		s = newScene(t)
		s.behaves(b)
		require.NoError(t, s.join(t))
		require.Len(t, s.tagged(name), 1)
		require.Equal(t, []string{"POST /hostgroup/host1/nodes"}, s.changes())
	}

	s.mu.Lock()
	again := s.machines["host1-1"]
	again.Hostname = "host1-2"
	s.machines[again.Hostname] = again
	s.mu.Unlock()
	require.NoError(t, s.join(t))
	require.Len(t, s.tagged(name), 1)
	require.NoError(t, s.b.Return(bounded(t), s.spec().Attempt, nil))
	require.Empty(t, s.tagged(name))
}

// A machine is missing on its host, and Observe reports its attempt as absent. Later a machine exists without an
// object on the consumer, and RemovePeering returns ErrInUse.
func TestMissingMachineIsAbsent(t *testing.T) {
	s := newScene(t)
	require.NoError(t, s.join(t))
	s.mu.Lock()
	kept := s.machines["host1-1"]
	delete(s.machines, kept.Hostname)
	s.mu.Unlock()
	seen, err := s.b.Observe(bounded(t), s.p)
	require.NoError(t, err)
	require.Equal(t, []string{"lca-g-e-1-1"}, seen.Absent)
	require.NoError(t, s.b.Return(bounded(t), s.spec().Attempt, nil))

	s.mu.Lock()
	s.machines[kept.Hostname] = kept
	s.mu.Unlock()
	err = s.b.RemovePeering(bounded(t), s.p, nil)
	require.ErrorIs(t, err, backend.ErrInUse)
	require.ErrorContains(t, err, "host1-1")
}

// A kubelet has registered its Node again. Restamp stamps the Node only when the Node is Ready and Kubernetes has
// removed its taint.
func TestRestampWaitsForTheNode(t *testing.T) {
	s := newScene(t)
	require.NoError(t, s.join(t))
	name := s.spec().Attempt.ObjectName()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, s.cluster.Delete(t.Context(), node))
	require.NoError(t, s.restart(t.Context(), name))
	taints := func(change func([]corev1.Taint) []corev1.Taint) {
		require.NoError(t, s.cluster.Get(t.Context(), client.ObjectKeyFromObject(node), node))
		node.Spec.Taints = change(node.Spec.Taints)
		require.NoError(t, s.cluster.Update(t.Context(), node))
	}
	taints(func(all []corev1.Taint) []corev1.Taint {
		return append(all, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	})
	require.ErrorIs(t, s.b.Restamp(t.Context(), s.spec().Attempt), backend.ErrNotYet)
	taints(func(all []corev1.Taint) []corev1.Taint { return all[:len(all)-1] })
	require.Empty(t, node.Spec.ProviderID)
	require.NoError(t, s.b.Restamp(t.Context(), s.spec().Attempt))
	taints(func(all []corev1.Taint) []corev1.Taint { return all })
	require.Equal(t, s.spec().Attempt.InstanceID(), node.Spec.ProviderID)
}

// A provider is pinned to its host. The backend refuses credentials with another address for the same provider until
// an operator repins the provider.
func TestProviderIsPinnedToItsHost(t *testing.T) {
	s := newScene(t)
	other := newTestHost(t, s.cluster, "host1")
	moved := other.provider(t)
	for range 2 {
		require.ErrorIs(t, s.b.Establish(bounded(t), moved, nil), backend.ErrInvalid)
		_, err := s.b.Observe(bounded(t), moved)
		require.ErrorIs(t, err, backend.ErrInvalid, "or its machines would seem to be gone")
	}
	forgot, err := s.b.Repin(t.Context(), "host1")
	require.NoError(t, err)
	require.True(t, forgot)
	require.NoError(t, s.b.Establish(bounded(t), moved, nil))
	require.ErrorIs(t, s.b.Establish(bounded(t), s.p, nil), backend.ErrInvalid)
	forgot, err = s.b.Repin(t.Context(), "nobody")
	require.NoError(t, err)
	require.False(t, forgot)
}

// An error about an access document does not contain the document's content.
func TestAccessErrorsShowNoContent(t *testing.T) {
	s := newScene(t)
	for name, change := range map[string]func(map[string]any){
		"http":              func(d map[string]any) { d["url"] = "http://host.example.org" },
		"password in url":   func(d map[string]any) { d["url"] = "https://u:" + hostToken + "@host.example.org" },
		"no url":            func(d map[string]any) { d["url"] = hostToken },
		"unknown field":     func(d map[string]any) { d[hostToken] = "x" },
		"no user data":      func(d map[string]any) { delete(d, "userData") },
		"no template":       func(d map[string]any) { d["userData"] = "{{" + hostToken },
		"no name of a host": func(d map[string]any) { d["hostGroup"] = "../" + hostToken },
		"no certificate":    func(d map[string]any) { d["caData"] = hostToken },
		"another host":      func(d map[string]any) { d["hostGroup"] = "nobody" },
	} {
		t.Run(name, func(t *testing.T) {
			document := s.document()
			change(document)
			_, err := s.b.Identify(bounded(t), credentialsFile(t, document))
			require.ErrorIs(t, err, backend.ErrInvalid)
			require.NotContains(t, err.Error(), hostToken)
		})
	}
}
