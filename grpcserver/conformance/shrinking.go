package conformance

import (
	"context"
	"slices"
)

func shrinkingRules() []Rule {
	return []Rule{
		{ID: "decrease-sign", Demands: "DecreaseTargetSize by 0 or more is refused and changes nothing.",
			Source: "cloudprovider/cloud_provider.go DecreaseTargetSize: the delta must be negative",
			Fix:    "answer InvalidArgument", check: decreaseSign},
		{ID: "decrease-pending", Demands: "DecreaseTargetSize(-1) cancels one instance that is being created.",
			Source: "core/static_autoscaler.go fixNodeGroupSize: CA does not scale while the call returns OK without " +
				"effect; from CA 1.36 on clusterstate/clusterstate.go calls it when a scale-up times out",
			Fix: "cancel an instance without a Node, and lower the target by one", check: decreasePending},
		{ID: "decrease-clamped", Demands: "DecreaseTargetSize by too much cancels only the instances that are being created.",
			Source: "clusterstate/clusterstate.go (1.36): CA cancels the whole scale-up, even if some of its Nodes exist",
			Fix:    "lower the target by the cancelled instances, never below the existing Nodes", check: decreaseClamped},
		{ID: "decrease-nothing", Demands: "DecreaseTargetSize is refused and changes nothing if no instance is creating.",
			Source: "core/static_autoscaler.go fixNodeGroupSize: after OK CA takes the sizes as corrected",
			Fix:    "answer FailedPrecondition; never delete a Node here", check: decreaseNothing},
		{ID: "decrease-then-delete", Demands: "DeleteNodes of instances that DecreaseTargetSize cancelled changes nothing.",
			Source: "core/static_autoscaler.go removeOldUnregisteredNodes: CA 1.36 sends both for one instance",
			Fix:    "release each instance once, by its id, and answer OK again", check: decreaseThenDelete},
	}
}

func decreaseSign(ctx context.Context, p *provider) {
	_, was := p.create(ctx, 1)
	p.refused(ctx, was, "DecreaseTargetSize(0)", p.decrease(ctx, p.Group, 0))
	p.refused(ctx, was, "DecreaseTargetSize(1)", p.decrease(ctx, p.Group, 1))
}

// cancel calls DecreaseTargetSize and returns the group's state. If the provider refuses the call, the check fails,
// or is skipped if all instances have received their Nodes in the meantime.
func (p *provider) cancel(ctx context.Context, delta int) groupState {
	refused := p.decrease(ctx, p.Group, delta)
	now := p.readNow(ctx)
	switch {
	case refused != nil && now.in(creating) == 0:
		skip("the Nodes were ready before the call")
	case refused != nil:
		fail("%d instances are being created: %v", now.in(creating), refused)
	}
	return now
}

func decreasePending(ctx context.Context, p *provider) {
	_, was := p.create(ctx, 2)
	if now := p.cancel(ctx, -1); now.target != was.target-1 || len(now.counted()) != now.target {
		fail("%v before, %v after it", was, now)
	}
}

func decreaseClamped(ctx context.Context, p *provider) {
	_, was := p.create(ctx, 2)
	now := p.cancel(ctx, -(was.target + 2))
	if now.target < was.in(running) || now.target >= was.target || now.in(creating) > 0 {
		fail("%v before, with %d running; %v after it", was, was.in(running), now)
	}
	for _, i := range was.list {
		if i.GetStatus().GetInstanceState() == running && !slices.Contains(now.counted(), i.GetId()) {
			fail("instance %s was running and is no longer counted", i.GetId())
		}
	}
}

func decreaseNothing(ctx context.Context, p *provider) {
	was := p.readNow(ctx)
	if was.in(creating) > 0 {
		skip("%d instances are being created", was.in(creating))
	}
	p.refused(ctx, was, "DecreaseTargetSize(-1) without an instance that is being created", p.decrease(ctx, p.Group, -1))
}

func decreaseThenDelete(ctx context.Context, p *provider) {
	ids, _ := p.create(ctx, 2)
	skipOn(p.decrease(ctx, p.Group, -1))
	was := p.readNow(ctx)
	cancelled := slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(was.counted(), id) })
	if len(cancelled) != 1 {
		skip("no instance was cancelled")
	}
	if err := p.remove(ctx, p.Group, cancelled...); err != nil {
		fail("instance %s: %v", cancelled[0], err)
	}
	p.unchanged(ctx, was)
}
