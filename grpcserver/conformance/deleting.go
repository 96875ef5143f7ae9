package conformance

import (
	"context"
	"slices"
	"sync"

	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

func deletingRules() []Rule {
	return []Rule{
		{ID: "delete-lowers", Demands: "DeleteNodes lowers the target size and uncounts the instance at once.",
			Source: "core/scaledown/actuation/delete_in_batch.go: CA reads the target next, and buys or removes by it",
			Fix:    "book the deletion before you answer, and remove the Node afterwards", check: deleteLowers},
		{ID: "delete-again", Demands: "DeleteNodes of an instance that is deleted is OK and changes nothing.",
			Source: "core/scaledown/actuation/delete_in_batch.go: CA repeats it for a Node still there after 5 minutes",
			Fix:    "lower the target by the ids that are still counted", check: deleteAgain},
		{ID: "delete-all-or-none", Demands: "DeleteNodes with a Node that is refused deletes none of the others.",
			Source: "core/scaledown/actuation/delete_in_batch.go: after an error CA lets pods onto all of them again",
			Fix:    "check all ids before you change anything", check: deleteAllOrNone},
		{ID: "delete-other-group", Demands: "DeleteNodes of another group's instance is refused and changes nothing.",
			Source: "cloudprovider/cloud_provider.go DeleteNodes: an error if a node does not belong to the group",
			Fix:    "answer InvalidArgument", check: deleteOtherGroup},
		{ID: "delete-together", Demands: "DeleteNodes calls at the same time lower the target by exactly what they delete.",
			Source: "core/scaledown/actuation/actuator.go: up to 10 at a time, a Node each",
			Fix:    "serialise the booking", check: deleteTogether},
		{ID: "unknown-group-changes", Demands: "Calls that change an unknown group are refused.",
			Source: "core/scaleup/orchestrator/executor.go, core/static_autoscaler.go: OK means that it was done",
			Fix:    "answer NotFound", check: unknownGroupChanges},
		{ID: "cleanup", Demands: "Cleanup changes nothing.",
			Source: "core/static_autoscaler.go ExitCleanUp: CA sends it whenever it ends, in each rolling update",
			Fix:    "do nothing", check: cleanup},
		{ID: "gives-back", Demands: "When all that was made is deleted the group is as it was.",
			Source: "clusterstate/clusterstate.go: CA never repairs a target that has drifted below what runs",
			Fix:    "count the target from the instances", check: givesBack},
	}
}

func deleteLowers(ctx context.Context, p *provider) outcome {
	ids, was, err := p.grow(ctx, 1)
	if err != nil {
		return unable(err)
	}
	if err := p.remove(ctx, p.Group, ids...); err != nil {
		return failed("%v", err)
	}
	now, err := p.look(ctx, p.Group)
	switch {
	case err != nil:
		return skipped("%v", err)
	case now.target != was.target-1 || slices.Contains(now.counted(), ids[0]):
		return failed("%v before, %v after it", was, now)
	}
	return passed("")
}

func deleteAgain(ctx context.Context, p *provider) outcome {
	ids, was, err := p.grow(ctx, 2)
	if err != nil {
		return unable(err)
	}
	for n, batch := range [][]string{ids[:1], ids[:1], {ids[1], ids[0], ids[1]}} {
		if err := p.remove(ctx, p.Group, batch...); err != nil {
			return failed("call %d, of %v: %v", n+1, batch, err)
		}
		now, err := p.look(ctx, p.Group)
		left := was.target - 1 - n/2
		switch {
		case err != nil:
			return skipped("%v", err)
		case now.target != left || len(now.counted()) != left:
			return failed("target size %d at first; after call %d, of %v: %v", was.target, n+1, batch, now)
		}
	}
	return passed("")
}

// stranger is an instance of another group, or of nobody when no other group has any.
func (p *provider) stranger(ctx context.Context) (id string) {
	list, err := p.groups(ctx)
	if err != nil {
		return foreignNodes["of another cloud"].GetProviderID()
	}
	for _, g := range list {
		instances, err := p.nodes(ctx, g.GetId())
		if g.GetId() != p.Group && err == nil && len(instances) > 0 {
			return instances[0].GetId()
		}
	}
	return foreignNodes["of another cloud"].GetProviderID()
}

func deleteAllOrNone(ctx context.Context, p *provider) outcome {
	ids, was, err := p.grow(ctx, 1)
	if err != nil {
		return unable(err)
	}
	stranger := p.stranger(ctx)
	refused := p.remove(ctx, p.Group, ids[0], stranger)
	if refused == nil && stranger == foreignNodes["of another cloud"].GetProviderID() {
		return skipped("%s is deleted without a word, and no other node group has an instance", stranger)
	}
	return p.refused(ctx, was, "DeleteNodes of "+ids[0]+" and "+stranger, refused)
}

func deleteOtherGroup(ctx context.Context, p *provider) outcome {
	list, err := p.groups(ctx)
	if err != nil {
		return skipped("%v", err)
	}
	at := slices.IndexFunc(list, func(g *protos.NodeGroup) bool { return g.GetId() != p.Group })
	if at < 0 {
		return skipped("there is one node group only")
	}
	other := list[at].GetId()
	ids, was, err := p.grow(ctx, 1)
	if err != nil {
		return unable(err)
	}
	return p.refused(ctx, was, "DeleteNodes("+other+") of "+ids[0], p.remove(ctx, other, ids...))
}

func deleteTogether(ctx context.Context, p *provider) outcome {
	ids, was, err := p.grow(ctx, leastRoom)
	if err != nil {
		return unable(err)
	}
	errs := make([]error, len(ids))
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() { errs[i] = p.remove(ctx, p.Group, id) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return failed("%v", err)
		}
	}
	now, err := p.look(ctx, p.Group)
	switch {
	case err != nil:
		return skipped("%v", err)
	case now.target != was.target-len(ids):
		return failed("%v before, %v after %d calls", was, now, len(ids))
	}
	return passed("")
}

func unknownGroupChanges(ctx context.Context, p *provider) outcome {
	for what, err := range map[string]error{
		"IncreaseSize":       p.increase(ctx, unknownID, 1),
		"DecreaseTargetSize": p.decrease(ctx, unknownID, -1),
		"DeleteNodes":        p.remove(ctx, unknownID, foreignNodes["of another cloud"].GetProviderID()),
	} {
		if err == nil {
			return failed("%s of node group %s is answered OK", what, unknownID)
		}
	}
	return passed("")
}

func cleanup(ctx context.Context, p *provider) outcome {
	_, was, err := p.grow(ctx, 1)
	if err != nil {
		return unable(err)
	}
	if _, err := call(ctx, p, "Cleanup", p.client.Cleanup, &protos.CleanupRequest{}); err != nil {
		return failed("%v", err)
	}
	return p.unchanged(ctx, was)
}

func givesBack(ctx context.Context, p *provider) outcome {
	if err := p.refresh(ctx); err != nil {
		return skipped("%v", err)
	}
	return p.unchanged(ctx, p.before)
}
