package conformance

import (
	"context"
	"slices"

	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

func shrinkingRules() []Rule {
	return []Rule{
		{ID: "decrease-sign", Demands: "DecreaseTargetSize by 0 or more is refused and changes nothing.",
			Source: "cloudprovider/cloud_provider.go DecreaseTargetSize: the delta must be negative",
			Fix:    "answer InvalidArgument", check: decreaseSign},
		{ID: "decrease-pending", Demands: "DecreaseTargetSize(-1) cancels one instance that is on its way.",
			Source: "core/static_autoscaler.go fixNodeGroupSize: CA scales nothing while it is answered OK and nothing " +
				"happens; from CA 1.36 on clusterstate/clusterstate.go calls it when a scale-up times out",
			Fix: "cancel an instance without a Node, and lower the target by one", check: decreasePending},
		{ID: "decrease-clamped", Demands: "DecreaseTargetSize by too much cancels what is on its way, and no more.",
			Source: "clusterstate/clusterstate.go (1.36): CA takes back the whole scale-up, also what has come of it",
			Fix:    "lower the target by what can be cancelled, never below the Nodes that are there", check: decreaseClamped},
		{ID: "decrease-nothing", Demands: "DecreaseTargetSize is refused when nothing is on its way, and changes nothing.",
			Source: "core/static_autoscaler.go fixNodeGroupSize: OK means to CA that the sizes are right now",
			Fix:    "answer FailedPrecondition; never delete a Node here", check: decreaseNothing},
		{ID: "decrease-then-delete", Demands: "DeleteNodes of what DecreaseTargetSize has cancelled changes nothing more.",
			Source: "core/static_autoscaler.go removeOldUnregisteredNodes: CA 1.36 sends both for one instance",
			Fix:    "give back each instance once, by its id, and answer OK again", check: decreaseThenDelete},
	}
}

func decreaseSign(ctx context.Context, p *provider) outcome {
	_, was, err := p.grow(ctx, 1)
	if err != nil {
		return unable(err)
	}
	return firstOf(p.refused(ctx, was, "DecreaseTargetSize(0)", p.decrease(ctx, p.Group, 0)),
		p.refused(ctx, was, "DecreaseTargetSize(1)", p.decrease(ctx, p.Group, 1)))
}

// cancel calls DecreaseTargetSize and looks. It is refused rightly when all instances have their Nodes meanwhile.
func (p *provider) cancel(ctx context.Context, delta int) (picture, outcome) {
	refused := p.decrease(ctx, p.Group, delta)
	now, err := p.look(ctx, p.Group)
	switch {
	case err != nil:
		return now, skipped("%v", err)
	case refused != nil && now.in(creating) == 0:
		return now, skipped("the Nodes came too soon")
	case refused != nil:
		return now, failed("%d instances are on their way: %v", now.in(creating), refused)
	}
	return now, passed("")
}

func decreasePending(ctx context.Context, p *provider) outcome {
	_, was, err := p.grow(ctx, 2)
	if err != nil {
		return unable(err)
	}
	now, seen := p.cancel(ctx, -1)
	switch {
	case seen.verdict != Passed:
		return seen
	case now.target != was.target-1 || len(now.counted()) != now.target:
		return failed("%v before, %v after it", was, now)
	}
	return passed("")
}

func decreaseClamped(ctx context.Context, p *provider) outcome {
	_, was, err := p.grow(ctx, 2)
	if err != nil {
		return unable(err)
	}
	now, seen := p.cancel(ctx, -(was.target + 2))
	switch {
	case seen.verdict != Passed:
		return seen
	case now.target < was.in(running) || now.target >= was.target || now.in(creating) > 0:
		return failed("%v before, with %d running; %v after it", was, was.in(running), now)
	}
	return p.stillThere(now, was)
}

// stillThere looks whether what was running is counted.
func (p *provider) stillThere(now, was picture) outcome {
	for _, i := range was.list {
		if i.GetStatus().GetInstanceState() == protos.InstanceStatus_instanceRunning &&
			!slices.Contains(now.counted(), i.GetId()) {
			return failed("instance %s was running, and is not counted any longer", i.GetId())
		}
	}
	return passed("")
}

func decreaseNothing(ctx context.Context, p *provider) outcome {
	was, err := p.look(ctx, p.Group)
	switch {
	case err != nil:
		return skipped("%v", err)
	case was.in(creating) > 0:
		return skipped("%d instances are on their way", was.in(creating))
	}
	return p.refused(ctx, was, "DecreaseTargetSize(-1) with nothing on its way", p.decrease(ctx, p.Group, -1))
}

func decreaseThenDelete(ctx context.Context, p *provider) outcome {
	ids, _, err := p.grow(ctx, 2)
	if err != nil {
		return unable(err)
	}
	if err := p.decrease(ctx, p.Group, -1); err != nil {
		return skipped("%v", err)
	}
	was, err := p.look(ctx, p.Group)
	if err != nil {
		return skipped("%v", err)
	}
	cancelled := slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(was.counted(), id) })
	if len(cancelled) != 1 {
		return skipped("no instance was cancelled")
	}
	if err := p.remove(ctx, p.Group, cancelled...); err != nil {
		return failed("instance %s: %v", cancelled[0], err)
	}
	return p.unchanged(ctx, was)
}
