package explain_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/explain"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

func list(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory),
		"pods": resource.MustParse("110")}
}

// world returns a pod that fits, in an offloaded namespace, and the group "std". The provider milan has capacity for
// nodes of this group.
func world() explain.World {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}},
			Tolerations: []corev1.Toleration{{Key: "virtual-node.liqo.io/not-allowed", Operator: corev1.TolerationOpExists}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled,
			Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available"}}},
	}
	return explain.World{
		Pod: pod, Now: time.Date(2027, 1, 1, 10, 0, 0, 0, time.UTC),
		Namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop",
			Labels: map[string]string{"liqo.io/scheduling-enabled": "true"}}},
		Groups: []fleet.Snapshot{group("std")},
		Market: &market.Market{Offers: []market.Offer{{Name: "milan", Provider: "milan", Lendable: list("8", "16Gi"),
			Free: list("8", "16Gi"), Labels: map[string]string{"region": "north"}}}},
	}
}

func group(id string) fleet.Snapshot {
	return fleet.Snapshot{Group: id, Max: 5, Target: 1, Spec: &fleet.GroupSpec{Max: 5,
		InstanceSpec: fleet.InstanceSpec{ID: id, Shape: list("2", "4Gi")}}}
}

func status(scaleUp string, max int) string {
	return fmt.Sprintf("time: now\nautoscalerStatus: Running\nnodeGroups:\n- name: other\n- name: std\n"+
		"  health: {status: Healthy, maxSize: %d}\n  scaleUp: %s\n", max, scaleUp)
}

// `status` and `explain` show the same reasons for which a group does not grow.
func TestEachConditionStopsItsGroup(t *testing.T) {
	for reason, change := range map[explain.Reason]func(*fleet.Snapshot){
		explain.Retired: func(s *fleet.Snapshot) {
			s.Notice = fleet.GroupNotice{Name: fleet.BlockRetired, Message: "it only shrinks"}
		},
		explain.BuildFails: func(s *fleet.Snapshot) { s.Condition = "many drivers fail" },
		explain.Paused:     func(s *fleet.Snapshot) { s.Paused = true },
		explain.AtMax:      func(s *fleet.Snapshot) { s.Target = 5 },
		explain.NotRequestedYet: func(s *fleet.Snapshot) {
			s.Notice = fleet.GroupNotice{Name: fleet.BlockChangeNotInForce, Message: "shape changed"}
		},
	} {
		w := world()
		change(&w.Groups[0])
		require.Equal(t, reason, explain.OfPod(w).Reason)
	}
}

func TestWhyAPodGetsNoNode(t *testing.T) {
	growing := func(phase fleet.Phase) fleet.InstanceView {
		return fleet.InstanceView{Name: "std-a-2", Phase: phase, Provider: "milan", Counts: true, Attempt: 1}
	}
	for name, tc := range map[string]struct {
		change  func(w *explain.World)
		verdict explain.Reason
		says    string
	}{
		"it may come": {func(*explain.World) {}, explain.NotRequestedYet, "Cluster Autoscaler has not requested"},
		"scheduled": {func(w *explain.World) {
			w.Pod.Spec.NodeName, w.Pod.Status = "n", corev1.PodStatus{Phase: corev1.PodRunning}
		}, explain.Scheduled, "it has a node, n"},
		"ended": {func(w *explain.World) { w.Pod.Status.Phase = corev1.PodSucceeded }, explain.Finished, "Succeeded"},
		"deleted": {func(w *explain.World) { w.Pod.DeletionTimestamp = &metav1.Time{Time: w.Now} }, explain.Finished,
			"being deleted"},
		"gated": {func(w *explain.World) { w.Pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} },
			explain.Gated, "quota"},
		"not seen": {func(w *explain.World) { w.Pod.Status.Conditions[0].Reason = "SchedulerError" }, explain.NotSeen,
			"SchedulerError"},
		"not offloaded": {func(w *explain.World) { w.Namespace.Labels, w.Pod.Spec.Tolerations = nil, nil },
			explain.NotOffloaded, "so Liqo does not allow its pods on virtual nodes: liqoctl offload namespace shop"},
		"not offloaded, and tolerates everything": {func(w *explain.World) {
			w.Namespace.Labels, w.Pod.Spec.Tolerations = nil, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}, explain.NotOffloaded, "on which Liqo rejects it permanently; remove the toleration"},
		"namespace not read": {func(w *explain.World) { w.Namespace = nil }, explain.NotRequestedYet, "std"},
		"no groups":          {func(w *explain.World) { w.Groups = nil }, explain.NoGroups, "no node group runs"},
		"no spec":            {func(w *explain.World) { w.Groups[0].Spec = nil }, explain.NotConfigured, "Refresh"},
		"paused":             {func(w *explain.World) { w.Groups[0].Paused = true }, explain.Paused, "resume group std"},
		"max": {func(w *explain.World) { w.Groups[0].Target = 5 }, explain.AtMax,
			"its target size 5 is its max"},
		"spent in an hour": {func(w *explain.World) {
			hard := 2.0
			w.Groups[0].Spec.Spending = &money.Spending{Hourly: money.SpendingLimit{Hard: &hard}}
			w.Groups[0].Cost = money.Cost{Currency: "USD", Since: w.Now, At: w.Now,
				Providers: map[string]money.ProviderCost{"milan": {Rate: money.Of(1.5)}}}
			w.Market.Offers[0].Price = 1
		}, explain.SpendingLimit, "spending.hourly.hard is 2 USD, the running nodes cost 1.5 an hour, and 1 more is " +
			"requested"},
		"spent in a month": {func(w *explain.World) {
			hard := 30.0
			w.Groups[0].Spec.Spending = &money.Spending{Monthly: money.SpendingLimit{Hard: &hard}}
			w.Groups[0].Cost = money.Cost{Currency: "USD", Since: w.Now.Add(-20 * time.Hour), At: w.Now.Add(-20 * time.Hour),
				Providers: map[string]money.ProviderCost{"milan": {Rate: money.Of(3)}}}
		}, explain.SpendingLimit, "spending.monthly.hard is 30 USD, and this month came to 30; it may grow from " +
			"2027-02-01 on"},
		"not spent this month": {func(w *explain.World) {
			hard := 31.0
			w.Groups[0].Spec.Spending = &money.Spending{Monthly: money.SpendingLimit{Hard: &hard}}
			w.Groups[0].Cost = money.Cost{Currency: "USD", Since: w.Now.Add(-20 * time.Hour), At: w.Now.Add(-20 * time.Hour),
				Providers: map[string]money.ProviderCost{"milan": {Rate: money.Of(3)}}}
		}, explain.NotRequestedYet, "std"},
		"limits": {func(w *explain.World) { w.Status = status("{status: NoActivity}", 1) }, explain.AtMax,
			"received a max of 1"},
		"backoff": {func(w *explain.World) {
			w.Status = status("{status: Backoff, backoffInfo: {errorCode: NoOffer, errorMessage: nobody fits}}", 5)
		}, explain.BackingOff, "NoOffer nobody fits"},
		"status of no use": {func(w *explain.World) { w.Status = "\tx" }, explain.NotRequestedYet, "std"},
		"on its way": {func(w *explain.World) {
			w.Groups[0].Instances = []fleet.InstanceView{growing(fleet.Joining)}
			w.Waits = func(string, fleet.InstanceView) string { return "virtual-kubelet: not ready" }
		}, explain.OnItsWay, "std-a-2 is being created: Joining on milan, waiting for virtual-kubelet: not ready"},
		"on its way, at max": {func(w *explain.World) {
			w.Groups[0].Target, w.Groups[0].Instances = 5, []fleet.InstanceView{growing(fleet.Pending)}
		}, explain.OnItsWay, "Pending"},
		"full": {func(w *explain.World) { w.Market.Offers[0].Free = list("1", "16Gi") }, explain.NoOffer,
			"milan: needs cpu 2, 1 of 8 is free"},
		"closed": {func(w *explain.World) { w.Market.Offers[0].Closed = "it is cordoned" }, explain.NoOffer,
			"it is cordoned"},
		"no offers":      {func(w *explain.World) { w.Market.Offers = nil }, explain.NoOffer, "no offer exists"},
		"market unknown": {func(w *explain.World) { w.Market = nil }, explain.NotRequestedYet, "std"},
		"too large": {func(w *explain.World) { w.Pod.Spec.Containers[0].Resources.Requests = list("3", "1Gi") },
			explain.NoGroupFits, "resources.requests: the pod requests cpu 3, a node has 2"},
		"gpu": {func(w *explain.World) {
			w.Pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
		}, explain.NoGroupFits, "the pod requests nvidia.com/gpu 1, a node has 0"},
		"no toleration": {func(w *explain.World) { w.Pod.Spec.Tolerations = nil }, explain.NoGroupFits,
			"no toleration for the taint virtual-node.liqo.io/not-allowed=true:NoExecute; Liqo adds the toleration"},
		"selector": {func(w *explain.World) { w.Pod.Spec.NodeSelector = map[string]string{"disk": "ssd"} },
			explain.NoGroupFits, "spec.nodeSelector: the pod requires disk=ssd, a node does not have disk"},
		"selector of an offer": {func(w *explain.World) { w.Pod.Spec.NodeSelector = map[string]string{"region": "north"} },
			explain.NoGroupFits, "nodes on milan would have it: use a group with `per: provider` for pods that select by it"},
		"affinity": {func(w *explain.World) {
			w.Pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/os", Operator: "In",
						Values: []string{"linux"}}, {Key: "zone", Operator: "In", Values: []string{"a", "b"}}}},
					{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "gpu", Operator: "Exists"}}},
				}}}}
		}, explain.NoGroupFits, "spec.affinity.nodeAffinity: the pod requires zone In a,b, or gpu Exists"},
		"the best group speaks": {func(w *explain.World) {
			w.Groups[0].Paused = true
			w.Groups = append(w.Groups, group("more"), fleet.Snapshot{Group: "new"})
		}, explain.NotRequestedYet, "node group more"},
	} {
		t.Run(name, func(t *testing.T) {
			w := world()
			tc.change(&w)
			p := explain.OfPod(w)
			var text bytes.Buffer
			require.NoError(t, p.Text(&text))
			require.Equal(t, tc.verdict, p.Reason, text.String())
			says := p.Message
			if tc.verdict == explain.NoGroupFits {
				says = p.Groups[0].Message
			}
			require.Contains(t, says, tc.says)
			require.Contains(t, text.String(), "pod shop/web-0: "+string(tc.verdict)+"\n  ")
			require.Contains(t, text.String(), tc.says)
			require.Equal(t, name == "selector of an offer", strings.Contains(text.String(), "nodes on milan would have it"),
				text.String())
			raw, err := json.Marshal(p)
			require.NoError(t, err)
			require.Contains(t, string(raw), `"reason":"`+string(tc.verdict)+`"`)
		})
	}
}

// The page lists the Events of other components after its own verdict. It names the sources that could not be read.
func TestEventsOfOtherComponentsAreShown(t *testing.T) {
	w := world()
	from := func(component, reason, message string, at int64) corev1.Event {
		return corev1.Event{Source: corev1.EventSource{Component: component}, Reason: reason, Message: message,
			LastTimestamp: metav1.Unix(at, 0)}
	}
	w.Events = []corev1.Event{
		from("cluster-autoscaler", "NotTriggerScaleUp", "2 max node group size reached", 20),
		from("cluster-autoscaler", "TriggeredScaleUp", "old", 10), from("default-scheduler", "FailedScheduling", "no", 30),
	}
	w.Notes = []string{"namespace shop: forbidden"}
	w.Groups[0].Instances = []fleet.InstanceView{{Name: "std-a-1", Phase: fleet.Failed, Counts: true,
		Failure: fleet.NewFailure(fleet.CodeTimeout, "milan", "", "it took too long")}}
	var text bytes.Buffer
	require.NoError(t, explain.OfPod(w).Text(&text))
	require.Equal(t, `pod shop/web-0: NotRequestedYet
  node group std: the pod fits and the group may grow; Cluster Autoscaler has not requested a node yet
  scheduler: 0/3 nodes are available
  Cluster Autoscaler: NotTriggerScaleUp: 2 max node group size reached
node group std: NotRequestedYet, target size 1 of 5
  the pod fits and the group may grow; Cluster Autoscaler has not requested a node yet
  failed: std-a-1: Timeout: it took too long
  offer of milan: fits at price 0 USD
code Timeout: A step did not reach the stage that the message names within its budget.
  what to do: Find out why the step does not reach the stage; the instance tries the next provider automatically. See docs/operations.md#an-instance-does-not-become-ready
not considered: namespace shop: forbidden
`, text.String())
}

// The page explains the code of each failure that it shows. It explains each code only once. It does not explain
// codes that only CA uses.
func TestPodsPageExplainsEachCodeOnce(t *testing.T) {
	failed := func(code fleet.Code) fleet.InstanceView {
		return fleet.InstanceView{Name: "std-a-1", Phase: fleet.Failed, Failure: fleet.NewFailure(code, "", "", "no")}
	}
	for backoff, want := range map[string]string{
		"SpendingLimit": "Refused Lost SpendingLimit", "Refused": "Refused Lost", "ofCA": "Refused Lost",
	} {
		w := world()
		w.Groups[0].Instances = []fleet.InstanceView{failed(fleet.CodeRefused), failed(fleet.CodeLost),
			failed(fleet.CodeRefused)}
		w.Status = status("{status: Backoff, backoffInfo: {errorCode: "+backoff+"}}", 5)
		var text bytes.Buffer
		require.NoError(t, explain.OfPod(w).Text(&text))
		var got []string
		for _, m := range regexp.MustCompile(`(?m)^code (\w+): `).FindAllStringSubmatch(text.String(), -1) {
			got = append(got, m[1])
		}
		require.Equal(t, want, strings.Join(got, " "), text.String())
	}
}

// If a group has a selection, the page shows the score of an offer and the parts of the score. It also shows how many
// nodes the group has on each provider.
func TestScoreOfAnOfferIsShown(t *testing.T) {
	w := world()
	w.Groups[0].Spec.Selection = &fleet.Selection{Price: 1, Warm: 0.5, Latency: 1, Spread: 1}
	w.Groups[0].Instances = []fleet.InstanceView{{Name: "std-a-1", Phase: fleet.Ready, Counts: true, Provider: "milan"}}
	w.Market.Offers[0].Peered, w.Market.Offers[0].LatencyMilliseconds = true, 50
	var text bytes.Buffer
	require.NoError(t, explain.OfPod(w).Text(&text))
	require.Contains(t, text.String(),
		"offer of milan: fits at price 0 USD, score 2.5: latency 0.5, price 1, spread 0.5, warm 0.5\n")
}

// A pod is scheduled on a virtual node and does not run there. The page shows the verdict, the provider of the node,
// and the last Event from the provider. The pod's condition PodScheduled has been copied from the provider.
func TestWhyAPodDoesNotRunOnItsNode(t *testing.T) {
	w := world()
	w.Groups[0].Instances = []fleet.InstanceView{{Name: "std-a-1", Phase: fleet.Ready, Attempt: 2, Provider: "milan"}}
	w.Pod.Spec.NodeName = "lca-std-a-1-2"
	w.Pod.Status.Conditions[0].Message = "0/1 nodes are available: 1 Insufficient cpu."
	w.Events = []corev1.Event{{Reason: "FailedScheduling", Message: "0/1 nodes are available",
		Source: corev1.EventSource{Component: "default-scheduler (remote)"}}}
	var text bytes.Buffer
	require.NoError(t, explain.OfPod(w).Text(&text))
	require.Equal(t, `pod shop/web-0: PendingOnProvider
  0/1 nodes are available: 1 Insufficient cpu.
  node lca-std-a-1-2 of instance std-a-1 on provider milan
  last event on the provider: FailedScheduling: 0/1 nodes are available
`, text.String())

	w.Pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "DeadlineExceeded"}
	require.Equal(t, "it has ended, Failed: DeadlineExceeded", explain.OfPod(w).Message)
	w.Pod.Status, w.Pod.DeletionTimestamp = corev1.PodStatus{Phase: corev1.PodRunning}, &metav1.Time{Time: w.Now}
	require.Equal(t, explain.Finished, explain.OfPod(w).Reason)
}
