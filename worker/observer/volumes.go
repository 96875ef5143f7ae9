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

// KeptNode is a Node that is kept for the volumes of its provider.
type KeptNode struct {
	Provider, Group, Node string
	// Claims is the number of bound claims on the provider, and Claim the first of these, as namespace/name.
	Claims int
	Claim  string
}

// Kept keeps the Nodes that the last round of this process has kept. The zero value is ready for use, nil keeps
// nothing, and it is safe for concurrent use.
type Kept struct {
	mu    sync.Mutex
	nodes []KeptNode
}

// Set keeps a result; on nil it does nothing.
func (k *Kept) Set(nodes []KeptNode) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.nodes = nodes
}

// Nodes returns the last result.
func (k *Kept) Nodes() []KeptNode {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.nodes)
}

// keepVolumes keeps one Node of each provider that holds volumes, and no other Node. It returns the names of the
// instances that are kept; known is false when the volumes cannot be listed, and nothing has changed then.
func (o *Observer) keepVolumes(ctx context.Context, groups []fleet.Snapshot, w world) (kept map[string]bool,
	known bool) {
	keeper, ok := o.Backend.(backend.Volumes)
	if !ok {
		return nil, false
	}
	claims, err := keeper.Volumes(ctx)
	if o.seen.volumes.IsNew(err) {
		o.Logger.Warn("volumes cannot be listed, so the nodes that are kept for them stay", "error", err)
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

// keep writes or removes our annotation, where the Node needs that. The next round repeats a write that fails.
func (o *Observer) keep(ctx context.Context, keeper backend.Volumes, f fleet.Found, kept bool) {
	if kept == f.Kept || kept && f.KeptByOthers {
		return
	}
	if err := keeper.Keep(ctx, f.Attempt, kept); err != nil {
		o.Logger.Warn("the annotation that keeps a node for volumes cannot be written; the next round tries again", "node",
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

// keepers chooses one Node of each provider with claims: the Node that another actor or we keep already, or the first
// by name. A Node whose instance leaves is not chosen.
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

// keepsOf returns the names of the group's kept instances if they differ from the published ones, and nil otherwise.
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
