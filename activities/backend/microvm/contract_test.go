package microvm

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/backendtest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

const (
	namespace = "machines"
	protected = "protected" // a label: a disruption budget forbids the pod's eviction
)

var testConfig = Config{Namespace: namespace, RefusedFor: 5 * time.Second, ForceAfter: 1500 * time.Millisecond,
	Poll: 5 * time.Millisecond}

// newCluster returns an API server without controllers.
func newCluster() client.WithWatch {
	return fake.NewClientBuilder().
		WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "consumer"}}).
		WithIndex(&corev1.Pod{}, "spec.nodeName",
			func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				o.SetUID(uuid.NewUUID())
				return c.Create(ctx, o, opts...)
			},
			SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, what client.Object,
				opts ...client.SubResourceCreateOption) error {
				if o.GetLabels()[protected] != "" {
					return apierrors.NewTooManyRequests("a disruption budget forbids it", 0)
				}
				return c.SubResource(sub).Create(ctx, o, what, opts...)
			},
		}).Build()
}

// world implements backendtest.World on a cluster and its hosts, with administrator access.
type world struct {
	client.Client
	hosts map[string]*testHost
}

func (w world) host(p fleet.Provider) *testHost { return w.hosts[p.ID] }

// will returns a function of World that gives a provider's host the behaviour b.
func (w world) will(b behaviour) func(context.Context, fleet.Provider) (backendtest.Undo, error) {
	return func(_ context.Context, p fleet.Provider) (backendtest.Undo, error) { return w.host(p).behaves(b), nil }
}

func (w world) objects(ctx context.Context) (all []backendtest.Object, err error) {
	ours := client.MatchingLabels{backend.LabelManagedBy: backend.ManagedBy, backend.LabelHub: fleet.DefaultHub}
	var records corev1.ConfigMapList
	var nodes corev1.NodeList
	if err := w.List(ctx, &records, client.InNamespace(namespace), ours); err != nil {
		return nil, err
	}
	if err := w.List(ctx, &nodes, client.HasLabels{fleet.LabelGroup}); err != nil {
		return nil, err
	}
	for _, o := range records.Items {
		all = append(all, backendtest.Object{Where: "consumer", Provider: o.Labels[fleet.LabelMachineProvider],
			Kind: "record", Name: o.Name, UID: string(o.UID), Refusal: o.Labels[backend.LabelRefused] != ""})
	}
	for _, o := range nodes.Items {
		all = append(all, backendtest.Object{Where: "consumer", Provider: o.Labels[fleet.LabelMachineProvider], Kind: "node",
			Name: o.Name, UID: string(o.UID)})
	}
	for id, h := range w.hosts {
		h.mu.Lock()
		for _, m := range h.machines {
			all = append(all, backendtest.Object{Where: id, Provider: id, Kind: "machine", Name: m.Tags[0], UID: m.Hostname})
		}
		if h.behave.refuses != "" { // the host itself refuses, and only its Undo ends that
			all = append(all, backendtest.Object{Where: id, Provider: id, Kind: "host group", Name: id, Refusal: true})
		}
		h.mu.Unlock()
	}
	return all, nil
}

func (w world) putPod(ctx context.Context, node string, pod backendtest.Pod) error {
	o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: pod.Name},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "c"}}}}
	if pod.DaemonSet {
		o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "1",
			Controller: ptr.To(true)}}
	}
	if pod.Protected {
		o.Labels = map[string]string{protected: "true"}
	}
	if pod.Held { // in a real cluster, the deletion sets the grace period
		o.Finalizers, o.DeletionGracePeriodSeconds = []string{"example.org/nobody"}, ptr.To[int64](0)
	}
	if err := w.Create(ctx, o); err != nil {
		return err
	}
	o.Status.Phase = corev1.PodRunning // a pod that does not run yet is evicted in spite of a disruption budget
	return w.Status().Update(ctx, o)
}

func (w world) pods(ctx context.Context, node string) (names []string, err error) {
	var all corev1.PodList
	err = w.List(ctx, &all, client.MatchingFields{"spec.nodeName": node})
	for _, pod := range all.Items {
		names = append(names, pod.Name)
	}
	return names, err
}

// put creates a foreign object.
func (w world) put(ctx context.Context, o client.Object) (backendtest.Undo, error) {
	undo := func(ctx context.Context) error { return client.IgnoreNotFound(w.Delete(ctx, o)) }
	return undo, w.Create(ctx, o)
}

// theirs returns a record of another installation in our namespace.
func theirs(name string, p fleet.Provider) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
		backend.LabelManagedBy: backend.ManagedBy, backend.LabelHub: "another", fleet.LabelMachineProvider: p.ID,
	}}}
}

func (w world) harness(t *testing.T, one, two *testHost) backendtest.Harness {
	return backendtest.Harness{
		Backend: newBackend(testConfig, w), Other: newBackend(testConfig, w),
		Providers: [2]fleet.Provider{one.provider(t), two.provider(t)}, Shape: testShape,
		Bound: 2 * time.Minute, Prompt: time.Minute, Pass: time.Second, RefusedFor: testConfig.RefusedFor,
		Nodes: fleet.NodesMachine, OneSided: true, TaintsLate: true,
		World: backendtest.World{
			Objects: w.objects,
			Node: func(ctx context.Context, name string) (*corev1.Node, error) {
				var node corev1.Node
				return &node, w.Get(ctx, client.ObjectKey{Name: name}, &node)
			},
			PutPod: w.putPod, Pods: w.pods,
			PutNode: func(ctx context.Context, name string) (backendtest.Undo, error) {
				return w.put(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
			},
			PutSlice: func(ctx context.Context, p fleet.Provider, name string) (backendtest.Undo, error) {
				return w.put(ctx, theirs("node."+name, p))
			},
			PutPeering: func(ctx context.Context, p fleet.Provider) (backendtest.Undo, error) {
				return w.put(ctx, theirs(peeringName(p.ID), p))
			},
			DeleteNode: func(ctx context.Context, a fleet.Attempt) error {
				if err := w.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: a.ObjectName()}}); err != nil {
					return err
				}
				return w.host(a.Provider).restart(ctx, a.ObjectName())
			},
			SliceThere: func(_ context.Context, a fleet.Attempt) (map[string]string, error) {
				told := map[string]string{}
				for _, m := range w.host(a.Provider).tagged(a.ObjectName()) {
					for _, tag := range m.Tags {
						told[tag] = ""
					}
				}
				return told, nil
			},
			SetProviderID: func(ctx context.Context, node, id string) error {
				return w.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}},
					client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"providerID":"`+id+`"}}`)))
			},
			Unreachable: func(t *testing.T, secret string) fleet.Credentials {
				nobody := httptest.NewServer(nil)
				nobody.Close()
				document := one.document()
				document["url"], document["token"] = nobody.URL, secret
				return credentialsFile(t, document)
			},
			Stall: w.will(behaviour{stalled: true}), StallStage: backend.StageAPIServer,
			Cut:    w.will(behaviour{cut: true}),
			Deny:   w.will(behaviour{refuses: fleet.RefusingCordoned}),
			Shrink: w.will(behaviour{most: 1}),
			Fill:   w.will(behaviour{create: http.StatusInsufficientStorage}),
			Close: func(ctx context.Context, p fleet.Provider, kind fleet.RefusingKind) (backendtest.Undo, error) {
				if kind == fleet.RefusingRemoved {
					return w.will(behaviour{gone: true})(ctx, p)
				}
				return w.will(behaviour{refuses: kind})(ctx, p)
			},
		},
	}
}

func TestContract(t *testing.T) {
	testkit.Slow(t)
	cluster := newCluster()
	one, two := newTestHost(t, cluster, "host1"), newTestHost(t, cluster, "host2")
	w := world{Client: cluster, hosts: map[string]*testHost{"host1": one, "host2": two}}
	backendtest.Run(t, w.harness(t, one, two))
	requireNoSecret(t, cluster)
	for _, change := range append(one.changes(), two.changes()...) {
		require.False(t, strings.Contains(change, "somebody-else"), "a foreign machine: %s", change)
	}
}
