package observer

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// KeptNode describes a Node that CA must not remove, because pods need a Node of this provider to reach their volumes
// there.
type KeptNode struct {
	Provider, Group, Node string
	// Claims is the number of PersistentVolumeClaims that are bound on the provider, and Claim is the first claim, as
	// namespace/name.
	Claims int
	Claim  string
}

// Kept stores the Nodes that the last round of this process has kept. The zero value is ready for use, Set on nil does
// nothing, and Kept is safe for concurrent use.
type Kept struct {
	mu    sync.Mutex
	nodes []KeptNode
}

// Set replaces the result. On a nil Kept it does nothing.
func (k *Kept) Set(nodes []KeptNode) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.nodes = nodes
}

// Nodes returns the last result; empty before the first one.
func (k *Kept) Nodes() []KeptNode {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.nodes)
}

// keepVolumes annotates one Node of each provider with volumes, so that CA does not remove this Node. It removes our
// annotation from all other Nodes. It returns the names of the kept instances. known is false when the volumes cannot
// be listed; then keepVolumes has changed nothing.
func (o *Observer) keepVolumes(ctx context.Context, groups []fleet.Snapshot, w world) (kept map[string]bool,
	known bool) {
	keeper, ok := o.Backend.(backend.Volumes)
	if !ok {
		return nil, false
	}
	claims, err := keeper.Volumes(ctx)
	if o.seen.volumes.IsNew(err) {
		o.Logger.Warn("cannot list the volumes; the nodes that are kept for volumes stay", "error", err)
	}
	if err != nil {
		return nil, false
	}
	keeps := keepers(w.found, claims, leaving(groups))
	kept = map[string]bool{}
	var nodes []KeptNode
	for _, f := range w.found {
		name := f.Attempt.ObjectName()
		if keeps[name] {
			of := claims[f.Attempt.Provider.ID]
			kept[f.Attempt.Instance] = true
			nodes = append(nodes, KeptNode{Provider: f.Attempt.Provider.ID, Group: f.Attempt.Group, Node: name,
				Claims: len(of), Claim: slices.Min(of)})
		}
		o.keep(ctx, keeper, f, keeps[name])
	}
	slices.SortFunc(nodes, func(a, b KeptNode) int { return strings.Compare(a.Node, b.Node) })
	o.Kept.Set(nodes)
	return kept, true
}

// keep writes or removes our annotation on the Node if the annotation must change. It logs the error of a write, and
// the next round tries again.
func (o *Observer) keep(ctx context.Context, keeper backend.Volumes, f fleet.Found, kept bool) {
	if kept == f.Kept || kept && f.KeptByOthers {
		return
	}
	if err := keeper.Keep(ctx, f.Attempt, kept); err != nil {
		o.Logger.Warn("cannot write the annotation that keeps a node for volumes; the next round tries again", "node",
			f.Attempt.ObjectName(), "error", err)
	}
}

// leaving returns the instances that are being removed, or whose group deletes volumes.
func leaving(groups []fleet.Snapshot) map[string]bool {
	leaves := map[string]bool{}
	for _, g := range groups {
		for _, i := range g.Instances {
			leaves[i.Name] = i.State == fleet.StateDeleting || g.Spec != nil && g.Spec.Volumes == fleet.DeleteVolumes
		}
	}
	return leaves
}

// keepers chooses one Node of each provider with claims, and returns the names of the chosen Nodes. It prefers a Node
// that another actor keeps, then a Node that we keep, and then the first by name. It does not choose a Node if
// `leaves` is true for the Node's instance.
func keepers(found []fleet.Found, claims map[string][]string, leaves map[string]bool) map[string]bool {
	chosen := map[string]fleet.Found{}
	prefers := func(f fleet.Found) int {
		switch {
		case f.KeptByOthers:
			return 0
		case f.Kept:
			return 1
		}
		return 2
	}
	for _, f := range found {
		provider := f.Attempt.Provider.ID
		if len(claims[provider]) == 0 || !f.Node || !f.Stamped || f.Terminating || leaves[f.Attempt.Instance] {
			continue
		}
		best, have := chosen[provider]
		if !have || cmp.Or(cmp.Compare(prefers(f), prefers(best)),
			strings.Compare(f.Attempt.ObjectName(), best.Attempt.ObjectName())) < 0 {
			chosen[provider] = f
		}
	}
	keeps := map[string]bool{}
	for _, f := range chosen {
		keeps[f.Attempt.ObjectName()] = true
	}
	return keeps
}

// keepsOf returns the names of the group's kept instances if they differ from the names that the group has published,
// and nil otherwise.
func keepsOf(g fleet.Snapshot, kept map[string]bool, known bool) *[]string {
	if !known {
		return nil
	}
	names, differs := []string{}, false
	for _, i := range g.Instances {
		if kept[i.Name] {
			names = append(names, i.Name)
		}
		differs = differs || kept[i.Name] != i.Kept
	}
	if !differs {
		return nil
	}
	return &names
}
