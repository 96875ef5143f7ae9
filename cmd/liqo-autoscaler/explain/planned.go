package explain

import (
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/template"
)

// Planned is a pod that a manifest describes. It need not exist.
type Planned struct {
	Pod *corev1.Pod
	// Object names the object that the pod is from, as in "Deployment shop/web".
	Object string
	Way    Way
	// Together is how many such pods Cluster Autoscaler provisions whole or not at all; 0 when it considers each alone.
	Together int
	// Never is why Cluster Autoscaler requests no node for such pods; empty when it does.
	Never string
}

// Way is where Cluster Autoscaler has the pod from, which decides whether the pod passes Liqo's webhook.
type Way string

// The ways.
const (
	Created  Way = "created"  // from the API server, which calls the webhook
	InMemory Way = "inMemory" // Cluster Autoscaler makes it in its memory
	DryRun   Way = "dryRun"   // as InMemory; from 1.36 on the pod passes the webhook in a dry run
)

// LiqoToleration is the toleration that Liqo's webhook adds to the pods of an offloaded namespace.
var LiqoToleration = corev1.Toleration{Key: liqoTaint, Operator: corev1.TolerationOpExists}

// consumes has the annotations of pods that use the capacity of a ProvisioningRequest, the newer annotation first
// (CA processors/provreq/pods_filter.go).
var consumes = []string{"autoscaling.x-k8s.io/consume-provisioning-request",
	"cluster-autoscaler.kubernetes.io/consume-provisioning-request"}

const (
	assumedCreated = "the pod's namespace is offloaded, and Liqo's webhook adds the toleration of virtual nodes to the pod"

	inMemoryFitsNowhere = "no node group fits, because Cluster Autoscaler makes such pods in its memory, where Liqo's " +
		"webhook does not add the toleration of virtual nodes: write tolerations: [{key: " + liqoTaint +
		", operator: Exists}] into the pod spec of the template"
	unlessDryRun = "; from 1.36 on Cluster Autoscaler sends the pods of a buffer through the webhook in a dry run " +
		"(--capacity-buffer-pod-dry-run-enabled), which adds the toleration if the namespace is offloaded"
)

// ToleratesVirtualNodes reports whether the pod has the toleration that Liqo adds in offloaded namespaces.
func ToleratesVirtualNodes(pod *corev1.Pod) bool {
	taint := corev1.Taint{Key: liqoTaint, Value: "true", Effect: corev1.TaintEffectNoExecute}
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(&taint) })
}

// neverRequested returns why Cluster Autoscaler requests no node for the pod, independent of the pod's requests; empty
// when Cluster Autoscaler may request one.
func (w World) neverRequested() string {
	owner := metav1.GetControllerOf(w.Pod)
	switch {
	case w.Planned != nil && w.Planned.Never != "":
		return w.Planned.Never
	case owner != nil && owner.Kind == "DaemonSet":
		return fmt.Sprintf("it belongs to DaemonSet %s, and Cluster Autoscaler requests no node for pods of a DaemonSet",
			owner.Name)
	}
	for _, key := range consumes {
		if request := w.Pod.Annotations[key]; request != "" {
			return fmt.Sprintf("it consumes ProvisioningRequest %s (annotation %s): Cluster Autoscaler requests nodes for the "+
				"request, and none for this pod", request, key)
		}
	}
	return ""
}

// withoutWebhook explains a pod that fits nowhere for lack of the toleration alone.
func (p *Pod) withoutWebhook(w World) {
	if w.Planned == nil || w.Planned.Way == Created || p.Reason != NoGroupFits || ToleratesVirtualNodes(w.Pod) {
		return
	}
	p.Message = inMemoryFitsNowhere
	if w.Planned.Way == DryRun {
		p.Message += unlessDryRun
	}
	w.Pod = w.Pod.DeepCopy()
	w.Pod.Spec.Tolerations = append(w.Pod.Spec.Tolerations, LiqoToleration)
	with := OfPod(w)
	p.WithToleration = string(with.Reason) + ": " + with.Message
	if with.Reason == NoGroupFits {
		p.WithToleration += ": " + with.Groups[0].Message
	}
}

// whole replaces the group's verdict for pods that Cluster Autoscaler provisions all together or not at all. room is
// the number of nodes for which the offers have room; -1 when the number is unknown.
func (g *Group) whole(w World, s fleet.Snapshot, room int) {
	if w.Planned == nil || w.Planned.Together <= 1 || g.Reason != NotRequestedYet {
		return
	}
	each := fit.PerNode(w.Pod, template.Of(s.Spec.InstanceSpec))
	need, may, reason := (w.Planned.Together+each-1)/each, s.Max-s.Target, AtMax
	if room >= 0 && room < may {
		may, reason = room, NoOffer
	}
	text := fmt.Sprintf("%d pods need %d new nodes, and the group may grow by %d", w.Planned.Together, need, may)
	if need <= may {
		g.Message = text + "; Cluster Autoscaler has not asked for a node yet"
		return
	}
	g.Reason, g.Message = reason, text+": Cluster Autoscaler provisions a request whole or not at all, in one group or "+
		"in groups that it balances; free capacity of existing nodes is not counted"
}

// Pods are the pods of a file.
type Pods []Pod

// Text prints them for people.
func (p Pods) Text(out io.Writer) error {
	for n, pod := range p {
		if n > 0 {
			if _, err := io.WriteString(out, "\n"); err != nil {
				return err
			}
		}
		if err := pod.Text(out); err != nil {
			return err
		}
	}
	return nil
}
