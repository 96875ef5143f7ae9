package explain_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/explain"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// planned returns the world of this test, but its pod comes from a manifest. The parameter way is how Cluster
// Autoscaler obtains the pod.
func planned(way explain.Way, together int) explain.World {
	w := world()
	w.Namespace, w.Pod.Status.Conditions[0].Message = nil, ""
	w.Planned = &explain.Planned{Pod: w.Pod, Object: "ProvisioningRequest shop/r", Way: way, Together: together}
	return w
}

// Cluster Autoscaler creates this pod only in its memory, so Liqo's webhook does not add its toleration. The page
// names this reason and the toleration to add, and also explains the pod as if it had the toleration.
func TestPodThatPassesNoWebhookLacksTheToleration(t *testing.T) {
	w := planned(explain.InMemory, 0)
	w.Pod.Spec.Tolerations = nil
	var text bytes.Buffer
	p := explain.OfPod(w)
	require.NoError(t, p.Text(&text))
	require.Equal(t, `ProvisioningRequest shop/r: NoGroupFits
  no node group fits, because Cluster Autoscaler creates such pods in its memory, where Liqo's webhook does not add the toleration of virtual nodes: write tolerations: [{key: virtual-node.liqo.io/not-allowed, operator: Exists}] into the pod spec of the template
  with the toleration: NotRequestedYet: node group std: the pod fits and the group may grow; Cluster Autoscaler has not requested a node yet
node group std: NoGroupFits, target size 1 of 5
  spec.tolerations: no toleration for the taint virtual-node.liqo.io/not-allowed=true:NoExecute
`, text.String())
	require.Empty(t, w.Pod.Spec.Tolerations, "the pod is the caller's")

	w.Planned.Way = explain.DryRun
	require.Contains(t, explain.OfPod(w).Message, "from 1.36 on Cluster Autoscaler sends the pods of a buffer through "+
		"the webhook in a dry run (--capacity-buffer-pod-dry-run-enabled)")

	w.Pod.Spec.Containers[0].Resources.Requests = list("3", "1Gi")
	require.Equal(t, "NoGroupFits: it does not fit on the nodes of any node group: resources.requests: the pod requests "+
		"cpu 3, a node has 2", explain.OfPod(w).WithToleration)

	w = planned(explain.InMemory, 0)
	p = explain.OfPod(w)
	require.Equal(t, explain.NotRequestedYet, p.Reason)
	require.Empty(t, p.WithToleration)
	require.Empty(t, p.Assumed)
}

// The API server would create this pod, so Liqo's webhook would add the toleration. The page states this assumption.
func TestPodThatPassesTheWebhookHasTheToleration(t *testing.T) {
	w := planned(explain.Created, 0)
	w.Planned.Object = ""
	var text bytes.Buffer
	require.NoError(t, explain.OfPod(w).Text(&text))
	require.Contains(t, text.String(), "pod shop/web-0: NotRequestedYet\n")
	require.Contains(t, text.String(), "  assumed: the pod's namespace is offloaded, and Liqo's webhook adds the "+
		"toleration of virtual nodes to the pod\n")
}

// Cluster Autoscaler provisions either all pods of a ProvisioningRequest or none. The page compares the number of
// nodes that they need with the number by which the group may grow. Two pods of 1 CPU fit on a node of 2 CPUs.
func TestProvisioningRequestIsProvisionedAsAWhole(t *testing.T) {
	const may = "the group may grow by "
	for says, tc := range map[string]struct {
		together, max int
		free          string
		reason        explain.Reason
	}{
		"8 pods need 4 new nodes, but " + may + "4; Cluster Autoscaler has not":    {8, 5, "8", explain.NotRequestedYet},
		"9 pods need 5 new nodes, but " + may + "4: Cluster Autoscaler provisions": {9, 5, "10", explain.AtMax},
		"9 pods need 5 new nodes, but " + may + "3: ":                              {9, 9, "6", explain.NoOffer},
		"the pod fits and the group may grow; Cluster Autoscaler has not":          {1, 5, "8", explain.NotRequestedYet},
	} {
		w := planned(explain.InMemory, tc.together)
		w.Groups[0].Max = tc.max
		w.Market.Offers[0].Free = list(tc.free, "64Gi")
		w.Market.Offers[0].Free["pods"] = resource.MustParse("1100")
		w.Market.Offers[0].Lendable = w.Market.Offers[0].Free
		p := explain.OfPod(w)
		require.Equal(t, tc.reason, p.Reason, p.Message)
		require.Contains(t, p.Groups[0].Message, says)
		w.Market = nil
		w.Groups[0].Max = 100
		require.Equal(t, explain.NotRequestedYet, explain.OfPod(w).Reason, "the room is not known")
	}
}

// Cluster Autoscaler requests no node for the pods of a DaemonSet, for pods that consume a ProvisioningRequest, and
// for a provisioning class that only checks the capacity. The page gives the reason in each case.
func TestPodsWithoutARequestAreExplained(t *testing.T) {
	w := world()
	w.Pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", Controller: ptr.To(true)}}
	p := explain.OfPod(w)
	require.Equal(t, explain.NeverRequested, p.Reason)
	require.Contains(t, p.Message, "it belongs to DaemonSet agent")

	for _, domain := range []string{"autoscaling.x-k8s.io", "cluster-autoscaler.kubernetes.io"} {
		w = world()
		w.Pod.Annotations = map[string]string{domain + "/consume-provisioning-request": "r"}
		p = explain.OfPod(w)
		require.Equal(t, explain.NeverRequested, p.Reason)
		require.Contains(t, p.Message, "it consumes ProvisioningRequest r (")
	}

	w = planned(explain.InMemory, 4)
	w.Planned.Never = "it only checks"
	p = explain.OfPod(w)
	require.Equal(t, explain.NeverRequested, p.Reason)
	require.Equal(t, "it only checks", p.Message)
}

func TestPodsOfAFileAreExplained(t *testing.T) {
	w := planned(explain.InMemory, 0)
	w.Groups = []fleet.Snapshot{}
	all := explain.Pods{explain.OfPod(w), explain.OfPod(w)}
	var text bytes.Buffer
	require.NoError(t, all.Text(&text))
	one := "ProvisioningRequest shop/r: NoGroups\n  no node group runs: does the gRPC server, and does Cluster " +
		"Autoscaler call it?\n"
	require.Equal(t, one+"\n"+one, text.String())
	raw, err := json.Marshal(all)
	require.NoError(t, err)
	require.Regexp(t, `^\[\{"pod":"shop/web-0","object":"ProvisioningRequest shop/r","reason":"NoGroups",`, string(raw))
}
