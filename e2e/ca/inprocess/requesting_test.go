//go:build externalgrpc

package inprocess

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca/core"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	requestsv1 "k8s.io/autoscaler/cluster-autoscaler/apis/provisioningrequest/autoscaling.x-k8s.io/v1"
	"k8s.io/autoscaler/cluster-autoscaler/processors/provreq"
	"k8s.io/autoscaler/cluster-autoscaler/provisioningrequest/pods"
	"k8s.io/autoscaler/cluster-autoscaler/provisioningrequest/provreqclient"
	"k8s.io/autoscaler/cluster-autoscaler/provisioningrequest/provreqwrapper"
)

// request starts CA again with --enable-provisioning-requests and with a ProvisioningRequest for n pods. Each pod needs
// a whole node.
func (w *world) request(class string, n int32, change ...func(*corev1.PodSpec)) {
	pod := newPod("template", "2", w.now())
	for _, c := range change {
		c(&pod.Spec)
	}
	template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "job"},
		Template: corev1.PodTemplateSpec{Spec: pod.Spec}}
	request := &requestsv1.ProvisioningRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "job", UID: "job", CreationTimestamp: metav1.Now()},
		Spec: requestsv1.ProvisioningRequestSpec{ProvisioningClassName: class, PodSets: []requestsv1.PodSet{
			{PodTemplateRef: requestsv1.Reference{Name: template.Name}, Count: n}}}}
	client := provreqclient.NewFakeProvisioningRequestClient(w.ctx, w.t,
		provreqwrapper.NewProvisioningRequest(request, []*corev1.PodTemplate{template}))
	w.requests = &core.Requests{Client: client,
		Injector: provreq.NewFakePodsInjector(client, clocktesting.NewFakePassiveClock(time.Now()))}
	w.options.ProvisioningRequestEnabled = true
	w.start()
}

// requested runs n loops of CA. After each loop it waits until CA's informer has the current state of the
// ProvisioningRequest. It returns the nodes that CA requested, and the condition Provisioned of the ProvisioningRequest
// with its reason.
func (w *world) requested(n int) (asked []string, provisioned string) {
	w.t.Helper()
	for range n {
		asked = append(asked, w.loops(1)...)
		testkit.Until(w.t, patience, "the informer of requests", func() error {
			seen, err := w.requests.Client.ProvisioningRequest("demo", "job")
			require.NoError(w.t, err)
			is, err := w.requests.Client.ProvisioningRequestNoCache("demo", "job")
			require.NoError(w.t, err)
			if !equality.Semantic.DeepEqual(seen.Status, is.Status) {
				return fmt.Errorf("%v is seen as %v", is.Status, seen.Status)
			}
			if c := meta.FindStatusCondition(is.Status.Conditions, requestsv1.Provisioned); c != nil {
				provisioned = string(c.Status) + " " + c.Reason
			}
			return nil
		})
	}
	return asked, provisioned
}

const bestEffort = requestsv1.ProvisioningClassBestEffortAtomicScaleUp

// CA creates the pods of a ProvisioningRequest only in its memory, where Liqo's webhook adds no toleration. Without a
// toleration in the PodTemplate no group fits.
func TestProvisioningRequestNeedsAToleration(t *testing.T) {
	w := newWorld(t, "- id: burst", offers(offer("milan", "north", 9, 1)))
	w.request(bestEffort, 4, intolerant)
	asked, provisioned := w.requested(4)
	require.Empty(t, asked)
	require.Equal(t, "False CapacityIsNotFound", provisioned)

	w.request(bestEffort, 4)
	asked, provisioned = w.requested(4)
	require.Equal(t, []string{"burst +4"}, asked)
	require.Equal(t, "True CapacityIsProvisioned", provisioned)
	require.Equal(t, 4, w.nodesOf("milan"))
}

// For a ProvisioningRequest that exceeds the free capacity, CA requests no node. For a ProvisioningRequest of the
// class that only checks the capacity, CA never requests a node.
func TestProvisioningRequestIsServedCompletelyOrNotAtAll(t *testing.T) {
	w := newWorld(t, "- {id: burst, max: 20}", offers(offer("milan", "north", 9, 1)))
	w.request(bestEffort, 10)
	asked, provisioned := w.requested(4)
	require.Empty(t, asked)
	require.Equal(t, "False CapacityIsNotFound", provisioned)

	w.request(requestsv1.ProvisioningClassCheckCapacity, 1)
	asked, provisioned = w.requested(4)
	require.Empty(t, asked)
	require.Equal(t, "False CapacityIsNotFound", provisioned)

	w.request(bestEffort, 9)
	asked, _ = w.requested(4)
	require.Equal(t, []string{"burst +9"}, asked)
}

// Half of the nodes of a ProvisioningRequest fail. CA reported the ProvisioningRequest as provisioned when it
// requested the nodes. It releases the failed nodes. For the pods that consume the ProvisioningRequest, CA requests
// no other nodes.
func TestFailedNodesOfAProvisioningRequestAreReleased(t *testing.T) {
	w := newWorld(t, `- {id: aaa, labels: {liqo-autoscaler.io/balance: web}}
- {id: bbb, labels: {liqo-autoscaler.io/balance: web}}`, offers(offer("milan", "north", 9, 1)))
	w.failing["bbb"] = refused()
	w.request(bestEffort, 4)
	asked, provisioned := w.requested(1)
	require.ElementsMatch(t, []string{"aaa +2", "bbb +2"}, asked)
	require.Equal(t, "True CapacityIsProvisioned", provisioned)

	delete(w.failing, "bbb")
	consumes := []string{requestsv1.ProvisioningRequestPodAnnotationKey,
		pods.DeprecatedProvisioningRequestPodAnnotationKey}
	for n := range 4 {
		p := newPod(fmt.Sprintf("job-%d", n), "2", w.now())
		p.Annotations = map[string]string{consumes[n%2]: "job"}
		p.Status = unschedulable()
		w.addPod(p)
	}
	asked, provisioned = w.requested(8)
	require.Equal(t, []string{"bbb releases 2"}, asked)
	require.Equal(t, "True CapacityIsProvisioned", provisioned)
	require.Equal(t, 2, w.pending())
}
