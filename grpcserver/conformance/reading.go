package conformance

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

// looks is how often a rule looks at what may change meanwhile.
const looks = 3

// readAtOnce is how long a read may take: CA asks for the group of every Node of the cluster, one after the other,
// several times a loop.
const readAtOnce = 50 * time.Millisecond

func readingRules() []Rule {
	return []Rule{
		{ID: "refresh", Demands: "Refresh succeeds while the provider is usable.",
			Source: "core/static_autoscaler.go: CA ends its loop otherwise",
			Fix:    "answer Refresh from what is known; fail it only while the provider's own store cannot be used",
			check:  refreshes},
		{ID: "groups-listed", Demands: "NodeGroups answers with groups whose ids are unique and not empty.",
			Source: "cloudprovider/externalgrpc/externalgrpc_cloud_provider.go NodeGroups: an error means no groups to CA",
			Fix:    "list every node group once, from memory; when that is not possible fail Refresh instead",
			check:  groupsListed},
		{ID: "groups-stable", Demands: "The ids of the groups are the same after a Refresh.",
			Source: "processors/nodeinfosprovider/mixed_nodeinfos_processor.go: CA drops what it knows of a missing group",
			Fix:    "keep a group listed until it is empty, and name it by its configuration",
			check:  again(groupsStable)},
		{ID: "group-bounds", Demands: "0 <= min <= max of each group.",
			Source: "core/scaledown/unneeded/nodes.go, core/scaleup/orchestrator/orchestrator.go",
			Fix:    "fill in minSize and maxSize of each group", check: groupBounds},
		{ID: "groups-answer", Demands: "Each listed group answers NodeGroupTargetSize and NodeGroupNodes.",
			Source: "clusterstate/clusterstate.go UpdateNodes: one error ends the loop and clears all scale-down timers",
			Fix:    "answer from the last state known, also for a group that is about to go", check: groupsAnswer},
		{ID: "target-bounds", Demands: "0 <= target <= max of each group.",
			Source: "core/scaleup/orchestrator/orchestrator.go, estimator/sng_capacity_threshold.go",
			Fix:    "list a max that is at least the target size", check: again(targetBounds)},
		{ID: "target-counts", Demands: "The target size is the number of instances that are not being deleted.",
			Source: "clusterstate/clusterstate.go updateIncorrectNodeGroupSizes: CA corrects the difference or stops",
			Fix:    "count the target size from the list of instances; give each unit an instance when it is booked",
			check:  again(targetCounts)},
		{ID: "unknown-group", Demands: "NodeGroupTargetSize and NodeGroupNodes of an unknown group are NotFound.",
			Source: "clusterstate/clusterstate.go UpdateNodes: an empty answer would look like a group of size 0",
			Fix:    "refuse ids that are no group's with NotFound", check: unknownGroup},
		{ID: "foreign-node", Demands: "NodeGroupForNode answers a Node of nobody with an empty id and no error.",
			Source: "processors/nodeinfosprovider/mixed_nodeinfos_processor.go: up to CA 1.34 an error ends the loop",
			Fix:    "answer OK with an empty id for whatever is not an instance of yours", check: foreignNode},
		{ID: "node-at-once", Demands: "NodeGroupForNode answers within 50 ms, in the middle of ten calls.",
			Source: "cloudprovider/externalgrpc/externalgrpc_cloud_provider.go: a call for each Node, never kept if foreign",
			Fix:    "answer from memory, without a call to anybody", check: nodeAtOnce},
	}
}

// again gives a check that compares several answers as many looks as it takes for nothing to change meanwhile.
func again(check func(context.Context, *provider) outcome) func(context.Context, *provider) outcome {
	return func(ctx context.Context, p *provider) (last outcome) {
		for range looks {
			if last = check(ctx, p); last.verdict != Failed {
				return last
			}
		}
		return last
	}
}

// eachGroup is the first outcome that is not passed.
func (p *provider) eachGroup(ctx context.Context, check func(*protos.NodeGroup) outcome) outcome {
	list, err := p.groups(ctx)
	if err != nil {
		return skipped("%v", err)
	}
	for _, g := range list {
		if seen := check(g); seen.verdict != Passed {
			return seen
		}
	}
	if len(list) == 0 {
		return skipped("no node groups are listed")
	}
	return passed("%d node groups", len(list))
}

func refreshes(ctx context.Context, p *provider) outcome {
	if err := p.refresh(ctx); err != nil {
		return failed("%v", err)
	}
	return passed("")
}

func groupsListed(ctx context.Context, p *provider) outcome {
	list, err := p.groups(ctx)
	if err != nil {
		return failed("%v", err)
	}
	seen := map[string]bool{}
	for _, g := range list {
		if g.GetId() == "" || seen[g.GetId()] {
			return failed("the id %q is empty or there twice", g.GetId())
		}
		seen[g.GetId()] = true
	}
	return passed("%s", strings.Join(slices.Sorted(maps.Keys(seen)), ", "))
}

func groupsStable(ctx context.Context, p *provider) outcome {
	ids := func() (out []string, err error) {
		list, err := p.groups(ctx)
		for _, g := range list {
			out = append(out, g.GetId())
		}
		return out, err
	}
	was, err := ids()
	if err != nil {
		return skipped("%v", err)
	}
	if err := p.refresh(ctx); err != nil {
		return skipped("%v", err)
	}
	now, err := ids()
	if err != nil {
		return skipped("%v", err)
	}
	slices.Sort(was)
	slices.Sort(now)
	if !slices.Equal(was, now) {
		return failed("%v before a Refresh, %v after it", was, now)
	}
	return passed("")
}

func groupBounds(ctx context.Context, p *provider) outcome {
	return p.eachGroup(ctx, func(g *protos.NodeGroup) outcome {
		if g.GetMinSize() < 0 || g.GetMaxSize() < g.GetMinSize() {
			return failed("node group %s has min %d and max %d", g.GetId(), g.GetMinSize(), g.GetMaxSize())
		}
		return passed("")
	})
}

func groupsAnswer(ctx context.Context, p *provider) outcome {
	return p.eachGroup(ctx, func(g *protos.NodeGroup) outcome {
		if _, err := p.look(ctx, g.GetId()); err != nil {
			return failed("node group %s: %v", g.GetId(), err)
		}
		return passed("")
	})
}

func targetBounds(ctx context.Context, p *provider) outcome {
	return p.eachGroup(ctx, func(g *protos.NodeGroup) outcome {
		target, err := p.target(ctx, g.GetId())
		switch {
		case err != nil:
			return skipped("%v", err)
		case target < 0 || target > int(g.GetMaxSize()):
			return failed("node group %s has target size %d and max %d", g.GetId(), target, g.GetMaxSize())
		}
		return passed("")
	})
}

func targetCounts(ctx context.Context, p *provider) outcome {
	return p.eachGroup(ctx, func(g *protos.NodeGroup) outcome {
		now, err := p.look(ctx, g.GetId())
		switch {
		case err != nil:
			return skipped("%v", err)
		case now.target != len(now.counted()):
			return failed("node group %s: %v", g.GetId(), now)
		}
		return passed("")
	})
}

func unknownGroup(ctx context.Context, p *provider) outcome {
	_, target := p.target(ctx, unknownID)
	_, nodes := p.nodes(ctx, unknownID)
	for call, err := range map[string]error{"NodeGroupTargetSize": target, "NodeGroupNodes": nodes} {
		if status.Code(err) != codes.NotFound {
			return failed("%s of node group %s answers %s", call, unknownID, status.Code(err))
		}
	}
	return passed("")
}

// unknownID is nobody's.
const unknownID = "conformance-no-such-group"

// foreignNodes are Nodes of nobody, or of another cloud.
var foreignNodes = map[string]*protos.ExternalGrpcNode{
	"without a providerID":    {Name: "conformance"},
	"of another cloud":        {Name: "conformance", ProviderID: "conformance:///zone/no-such-instance"},
	"with a broken one":       {Name: "conformance", ProviderID: "://"},
	"that is to come":         {Name: "template-node-for-conformance-1-upcoming-0"},
	"as a fake, of no one":    fake("conformance://no-such-instance"),
	"that has nothing at all": {},
}

func foreignNode(ctx context.Context, p *provider) outcome {
	for what, node := range foreignNodes {
		got, err := p.groupOf(ctx, node)
		if err != nil || got.GetId() != "" {
			return failed("a Node %s: %s", what, answered(got, err))
		}
	}
	return passed("")
}

func nodeAtOnce(ctx context.Context, p *provider) outcome {
	var took []time.Duration
	for range 10 {
		began := p.Clock()
		if _, err := p.groupOf(ctx, foreignNodes["of another cloud"]); err != nil {
			return skipped("%v", err)
		}
		took = append(took, p.Clock().Sub(began))
	}
	slices.Sort(took)
	if middle := took[len(took)/2]; middle > readAtOnce {
		return failed("half of the calls took %s or more", middle.Round(time.Millisecond))
	}
	return passed("%s", took[len(took)/2].Round(10*time.Microsecond))
}
