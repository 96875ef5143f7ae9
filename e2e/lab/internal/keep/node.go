package keep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// PlainNode is the name of the only node of each cluster that is not a virtual node.
const PlainNode = "plain-0"

const leasePeriod = 10 * time.Second

// registerNode registers the plain node as Ready, as a kubelet does. In the consumer cluster the node is small, so
// that pods soon need virtual nodes.
func (c *cluster) registerNode(ctx context.Context) error {
	cpu, memory := "32", "64Gi"
	if c.index == 0 {
		cpu, memory = "1", "2Gi"
	}
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: PlainNode, Labels: map[string]string{
			corev1.LabelHostname: PlainNode, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: c.nodeIP().String()}},
			Conditions: ready(),
		},
	}
	if err := c.renewLease(ctx); err != nil {
		return err
	}
	nodes := c.kube.CoreV1().Nodes()
	if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("register node of %s: %w", c.name, err)
	}
	// The API server taints every new node as not ready. The node lifecycle controller would remove this taint only
	// some time later.
	_, err := nodes.Patch(ctx, PlainNode, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("register node of %s: %w", c.name, err)
	}
	return nil
}

// renewLeases renews the plain node's Lease until ctx ends. If one renewal fails, this has no effect. If several
// fail, the node lifecycle controller sets the node's condition Ready to Unknown. Then renewLeases sets the condition
// to True again, as a kubelet does.
func (c *cluster) renewLeases(ctx context.Context, log func(string, ...any)) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := errors.Join(c.renewLease(ctx), c.staysReady(ctx)); err != nil && ctx.Err() == nil {
			log("%v", err)
		}
	}, leasePeriod)
}

// staysReady sets the node's condition Ready to True if it has another value.
func (c *cluster) staysReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leasePeriod)
	defer cancel()
	nodes := c.kube.CoreV1().Nodes()
	node, err := nodes.Get(ctx, PlainNode, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("look at the node of %s: %w", c.name, err)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": ready()}})
	if err == nil {
		_, err = nodes.Patch(ctx, PlainNode, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil {
		return fmt.Errorf("node of %s is ready again: %w", c.name, err)
	}
	return nil
}

func ready() []corev1.NodeCondition {
	now := metav1.Now()
	return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Lab",
		LastHeartbeatTime: now, LastTransitionTime: now}}
}

func (c *cluster) renewLease(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leasePeriod)
	defer cancel()
	leases := c.kube.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now, holder, seconds := metav1.NowMicro(), PlainNode, int32(40)
	patch, err := json.Marshal(map[string]any{"spec": coordinationv1.LeaseSpec{RenewTime: &now}})
	if err != nil {
		return fmt.Errorf("renew node lease of %s: %w", c.name, err)
	}
	_, err = leases.Patch(ctx, PlainNode, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: PlainNode, Namespace: corev1.NamespaceNodeLease},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("renew node lease of %s: %w", c.name, err)
	}
	return nil
}
