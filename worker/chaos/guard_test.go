package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// guard watches each node from the time at which it is Ready and stamped until CA releases it. During this time the
// node must not be replaced or drained, and its pods must stay.
type guard struct {
	mu    sync.Mutex
	nodes map[string]guarded
	given map[string]bool // instances that CA has released
	ever  int
	last  time.Time
	stall time.Duration // the longest interval between two nodes that became Ready
}

type guarded struct {
	uid      types.UID
	instance string
	pods     []string
}

func newGuard() *guard { return &guard{nodes: map[string]guarded{}, given: map[string]bool{}} }

// watch checks the world once.
func (g *guard) watch(world *sim.World, m *model) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w, err := world.Snapshot() // read after every earlier call of give and occupy
	if err != nil {
		m.violate("%v", err)
		return
	}
	for name, node := range w.Consumer.Nodes {
		if _, known := g.nodes[name]; known || node.Spec.ProviderID == "" || !isReady(node) {
			continue
		}
		instance := node.Annotations[backend.LabelInstance]
		if g.given[instance] {
			continue
		}
		g.nodes[name] = guarded{uid: node.UID, instance: instance}
		if g.ever++; !g.last.IsZero() {
			g.stall = max(g.stall, time.Since(g.last))
		}
		g.last = time.Now()
	}
	for name, of := range g.nodes {
		if g.given[of.instance] {
			continue
		}
		if fault := of.suffers(w.Consumer.Nodes[name], w.Consumer.Pods[name]); fault != "" {
			m.violate("Ready node %s %s, and nobody asked it back", name, fault)
			g.given[of.instance] = true // one violation per node is enough
		}
	}
}

// suffers returns the forbidden change that a node has undergone, or "".
func (of guarded) suffers(node *corev1.Node, pods []sim.Pod) string {
	switch {
	case node == nil:
		return "is gone"
	case node.UID != of.uid:
		return "was made anew"
	case node.Spec.ProviderID == "":
		return "has lost its id"
	case node.Spec.Unschedulable:
		return "is drained"
	}
	for _, name := range of.pods {
		if !slices.ContainsFunc(pods, func(p sim.Pod) bool { return p.Name == name }) {
			return "has lost pod " + name
		}
	}
	return ""
}

// give ends the watch over the nodes of these instances. The test calls it before CA releases them.
func (g *guard) give(instances ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, name := range instances {
		g.given[name] = true
	}
}

// occupy puts a pod on the node of each of these instances. A protected pod delays the drain of its node.
func (g *guard) occupy(ctx context.Context, world *sim.World, instances []string, protected bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, of := range g.nodes {
		if !slices.Contains(instances, of.instance) {
			continue
		}
		if err := world.PutPod(ctx, name, sim.Pod{Name: "work", Protected: protected}); err != nil {
			return fmt.Errorf("occupy %s: %w", name, err)
		}
		of.pods = []string{"work"}
		g.nodes[name] = of
	}
	return nil
}

// instances returns the group's instances whose nodes are Ready and that CA has not released, sorted by name.
func (g *guard) instances(w *sim.State, group string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var names []string
	for _, node := range w.Consumer.Nodes {
		instance := node.Annotations[backend.LabelInstance]
		if node.Labels[backend.LabelGroup] == group && node.Spec.ProviderID != "" && isReady(node) && !g.given[instance] {
			names = append(names, instance)
		}
	}
	slices.Sort(names)
	return names
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func (g *guard) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return fmt.Sprintf("%d nodes were Ready, and %.1fs were the longest time without a new one", g.ever, g.stall.Seconds())
}

// undone checks each attempt that the product has undone, and each peering that has failed. Each must have an allowed
// reason.
func (o *scenario) undone() {
	all, err := o.s.listAll(o.ctx)
	if err != nil {
		o.m.violate("list what was undone: %v", err)
		return
	}
	n := 0
	for _, w := range all {
		id, kind := w.GetExecution().GetWorkflowId(), w.GetType().GetName()
		if kind != workflows.TypeUndo && kind != workflows.TypePeering {
			continue
		}
		if kind == workflows.TypeUndo {
			n++
		}
		var provider string
		at := w.GetSearchAttributes().GetIndexedFields()[workflows.AttributeProvider]
		if err := converter.GetDefaultDataConverter().FromPayload(at, &provider); err != nil {
			o.m.violate("provider of %s: %v", id, err)
		}
		if fault := o.unjust(kind, id, provider, w.GetStatus()); fault != "" {
			o.m.violate("%s on %s %s", id, provider, fault)
		}
	}
	o.m.note("judge", "%d attempts were undone", n)
}

// unjust returns why an undo, or the end of a peering, was not allowed, or "". The product must neither leave nor
// refuse a healthy provider, and must not undo a node that was Ready.
func (o *scenario) unjust(kind, id, provider string, status enums.WorkflowExecutionStatus) string {
	attempt := fleet.ObjectPrefix + strings.TrimPrefix(id, "undo/")
	of, wasReady := o.guard.nodes[attempt]
	switch {
	case kind == workflows.TypePeering && status == enums.WORKFLOW_EXECUTION_STATUS_FAILED && !o.sick[provider]:
		return "has failed, and the provider is healthy"
	case kind != workflows.TypeUndo:
		return ""
	case wasReady && !o.guard.given[of.instance]:
		return "takes back what was Ready, and nobody asked it back"
	case !o.sick[provider] && !o.unknown[attempt]:
		return "takes back what is on a healthy provider"
	}
	return ""
}
