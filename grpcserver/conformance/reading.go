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

// readAtOnce bounds the duration of a read. In each loop, CA requests the group of every Node of the cluster several
// times, one request after the other.
const readAtOnce = 50 * time.Millisecond

func readingRules() []Rule {
	return []Rule{
		{ID: "refresh", Demands: "Refresh succeeds while the provider is usable.",
			Source: "core/static_autoscaler.go: CA ends its loop otherwise",
			Fix:    "answer Refresh from the known state; fail it only while the provider's own store cannot be used",
			check:  refreshes},
		{ID: "groups-listed", Demands: "NodeGroups returns groups whose ids are unique and not empty.",
			Source: "cloudprovider/externalgrpc/externalgrpc_cloud_provider.go NodeGroups: CA takes an error as no groups",
			Fix:    "list every node group once, from memory; if that is not possible, fail Refresh instead",
			check:  groupsListed},
		{ID: "groups-stable", Demands: "The ids of the groups are the same after a Refresh.",
			Source: "processors/nodeinfosprovider/mixed_nodeinfos_processor.go: CA drops its knowledge about a missing group",
			Fix:    "keep a group listed until it is empty, and name it by its configuration",
			check:  groupsStable, repeated: true},
		{ID: "group-bounds", Demands: "0 <= min <= max of each group.",
			Source: "core/scaledown/unneeded/nodes.go, core/scaleup/orchestrator/orchestrator.go",
			Fix:    "set minSize and maxSize of each group", check: groupBounds},
		{ID: "groups-answer", Demands: "Each listed group answers NodeGroupTargetSize and NodeGroupNodes.",
			Source: "clusterstate/clusterstate.go UpdateNodes: one error ends the loop and clears all scale-down timers",
			Fix:    "answer from the last known state, also for a group that is about to end", check: groupsAnswer},
		{ID: "target-bounds", Demands: "0 <= target <= max of each group.",
			Source: "core/scaleup/orchestrator/orchestrator.go, estimator/sng_capacity_threshold.go",
			Fix:    "list a max that is at least the target size", check: targetBounds, repeated: true},
		{ID: "target-counts", Demands: "The target size is the number of instances that are not being deleted.",
			Source: "clusterstate/clusterstate.go updateIncorrectNodeGroupSizes: CA corrects the difference or stops",
			Fix:    "compute the target size from the list of instances; book each unit with its instance",
			check:  targetCounts, repeated: true},
		{ID: "unknown-group", Demands: "NodeGroupTargetSize and NodeGroupNodes of an unknown group return NotFound.",
			Source: "clusterstate/clusterstate.go UpdateNodes: an empty answer would look like a group of size 0",
			Fix:    "answer NotFound for ids of no group", check: unknownGroup},
		{ID: "foreign-node", Demands: "NodeGroupForNode returns an empty id and no error for a Node of no group.",
			Source: "processors/nodeinfosprovider/mixed_nodeinfos_processor.go: up to CA 1.34 an error ends the loop",
			Fix:    "answer OK with an empty id for every Node that is not your instance", check: foreignNode},
		{ID: "node-at-once", Demands: "NodeGroupForNode answers within 50 ms (median of ten calls).",
			Source: "cloudprovider/externalgrpc/externalgrpc_cloud_provider.go: CA calls it for each Node, and again if foreign",
			Fix:    "answer from memory, without a request to another process", check: nodeAtOnce},
	}
}

// eachGroup calls check for each group, and skips the rule when no group is listed.
func (p *provider) eachGroup(ctx context.Context, check func(*protos.NodeGroup)) {
	list, err := p.groups(ctx)
	skipOn(err)
	for _, g := range list {
		check(g)
	}
	if len(list) == 0 {
		skip("no node groups are listed")
	}
	p.setText("%d node groups", len(list))
}

func refreshes(ctx context.Context, p *provider) { failOn(p.refresh(ctx)) }

func groupsListed(ctx context.Context, p *provider) {
	list, err := p.groups(ctx)
	failOn(err)
	seen := map[string]bool{}
	for _, g := range list {
		if g.GetId() == "" || seen[g.GetId()] {
			fail("the id %q is empty or listed twice", g.GetId())
		}
		seen[g.GetId()] = true
	}
	p.setText("%s", strings.Join(slices.Sorted(maps.Keys(seen)), ", "))
}

func groupsStable(ctx context.Context, p *provider) {
	ids := func() (out []string) {
		list, err := p.groups(ctx)
		skipOn(err)
		for _, g := range list {
			out = append(out, g.GetId())
		}
		slices.Sort(out)
		return out
	}
	was := ids()
	skipOn(p.refresh(ctx))
	if now := ids(); !slices.Equal(was, now) {
		fail("%v before a Refresh, %v after it", was, now)
	}
}

func groupBounds(ctx context.Context, p *provider) {
	p.eachGroup(ctx, func(g *protos.NodeGroup) {
		if g.GetMinSize() < 0 || g.GetMaxSize() < g.GetMinSize() {
			fail("node group %s has min %d and max %d", g.GetId(), g.GetMinSize(), g.GetMaxSize())
		}
	})
}

func groupsAnswer(ctx context.Context, p *provider) {
	p.eachGroup(ctx, func(g *protos.NodeGroup) {
		if _, err := p.readGroup(ctx, g.GetId()); err != nil {
			fail("node group %s: %v", g.GetId(), err)
		}
	})
}

func targetBounds(ctx context.Context, p *provider) {
	p.eachGroup(ctx, func(g *protos.NodeGroup) {
		target, err := p.target(ctx, g.GetId())
		skipOn(err)
		if target < 0 || target > int(g.GetMaxSize()) {
			fail("node group %s has target size %d and max %d", g.GetId(), target, g.GetMaxSize())
		}
	})
}

func targetCounts(ctx context.Context, p *provider) {
	p.eachGroup(ctx, func(g *protos.NodeGroup) {
		now, err := p.readGroup(ctx, g.GetId())
		skipOn(err)
		if now.target != len(now.counted()) {
			fail("node group %s: %v", g.GetId(), now)
		}
	})
}

func unknownGroup(ctx context.Context, p *provider) {
	_, target := p.target(ctx, unknownID)
	_, nodes := p.nodes(ctx, unknownID)
	for call, err := range map[string]error{"NodeGroupTargetSize": target, "NodeGroupNodes": nodes} {
		if status.Code(err) != codes.NotFound {
			fail("%s of node group %s answers %s", call, unknownID, status.Code(err))
		}
	}
}

// unknownID is an id that no group has.
const unknownID = "conformance-no-such-group"

// foreignNodes holds Nodes that belong to no group or to another cloud.
var foreignNodes = map[string]*protos.ExternalGrpcNode{
	"without a providerID":  {Name: "conformance"},
	"of another cloud":      {Name: "conformance", ProviderID: "conformance:///zone/no-such-instance"},
	"with a broken one":     {Name: "conformance", ProviderID: "://"},
	"that is upcoming":      {Name: "template-node-for-conformance-1-upcoming-0"},
	"as a fake of no group": fakeNode("conformance://no-such-instance"),
	"without any field":     {},
}

func foreignNode(ctx context.Context, p *provider) {
	for what, node := range foreignNodes {
		got, err := p.groupOf(ctx, node)
		if err != nil || got.GetId() != "" {
			fail("a Node %s: %s", what, answered(got, err))
		}
	}
}

func nodeAtOnce(ctx context.Context, p *provider) {
	var took []time.Duration
	for range 10 {
		began := p.Clock()
		_, err := p.groupOf(ctx, foreignNodes["of another cloud"])
		skipOn(err)
		took = append(took, p.Clock().Sub(began))
	}
	slices.Sort(took)
	middle := took[len(took)/2]
	if middle > readAtOnce {
		fail("half of the calls took %s or more", middle.Round(time.Millisecond))
	}
	p.setText("%s", middle.Round(10*time.Microsecond))
}
