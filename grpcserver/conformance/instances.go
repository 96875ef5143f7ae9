package conformance

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

// These constants bound the instances and the texts that a rule checks.
const (
	maxInstances  = 50 // per group, in rules that make one call per instance
	maxCodeLength = 63 // length of an error code in characters
)

func instanceRules() []Rule {
	rules := []Rule{
		{ID: "instance-ids", Demands: "Instance ids are unique over all groups and have the form of a providerID.",
			Source: "clusterstate/clusterstate.go getNotRegisteredNodes: CA finds the Node by id = spec.providerID",
			Fix:    "use an id <scheme>://<name> for one instance only, and set it as spec.providerID of its Node",
			check:  instanceIDs, repeated: true},
		{ID: "instance-states", Demands: "Each instance has a state, and an errorInfo only while it is creating.",
			Source: "cloudprovider/externalgrpc/externalgrpc_node_group.go, clusterstate/clusterstate.go: CA ignores others",
			Fix:    "set creating, running or deleting; report an error with creating and an errorCode",
			check:  instanceStates},
		{ID: "error-codes", Demands: "An errorCode is a word of at most 63 characters.",
			Source: "metrics/metrics.go: the code is a label value of failed_scale_ups_total",
			Fix:    "use few fixed codes, and put the details in errorMessage", check: errorCodes},
		{ID: "node-of-instance", Demands: "NodeGroupForNode finds each instance's group by providerID alone.",
			Source: "core/static_autoscaler.go removeOldUnregisteredNodes: CA sends a fake Node for an instance without a Node",
			Fix:    "look up spec.providerID; a fake Node has this name too, has no labels and does not exist",
			check:  nodeOfInstance, repeated: true},
		{ID: "node-bounds", Demands: "NodeGroupForNode returns the same min and max as NodeGroups.",
			Source: "core/scaledown/unneeded/nodes.go: CA scales in below min if min is missing here",
			Fix:    "set minSize and maxSize in this answer too", check: nodeBounds, repeated: true},
	}
	for i := range rules {
		rules[i].needsInstances = true
	}
	return rules
}

// eachInstance calls check for the instances of each group. The parameter `most` limits the instances of one group.
func (p *provider) eachInstance(ctx context.Context, most int, check func(*protos.NodeGroup, *protos.Instance)) {
	n := 0
	p.eachGroup(ctx, func(g *protos.NodeGroup) {
		list, err := p.nodes(ctx, g.GetId())
		skipOn(err)
		for _, i := range list[:min(len(list), most)] {
			n++
			check(g, i)
		}
	})
	if n == 0 {
		skip("no instances are listed")
	}
	p.setText("%d instances", n)
}

func instanceIDs(ctx context.Context, p *provider) {
	owner := map[string]string{}
	p.eachInstance(ctx, 1<<30, func(g *protos.NodeGroup, i *protos.Instance) {
		scheme, name, ok := strings.Cut(i.GetId(), "://")
		if !ok || scheme == "" || name == "" {
			fail("node group %s has an instance %q", g.GetId(), i.GetId())
		}
		if other, twice := owner[i.GetId()]; twice {
			fail("instance %s is in node group %s and in %s", i.GetId(), other, g.GetId())
		}
		owner[i.GetId()] = g.GetId()
	})
}

func instanceStates(ctx context.Context, p *provider) {
	p.eachInstance(ctx, 1<<30, func(_ *protos.NodeGroup, i *protos.Instance) {
		state, broken := i.GetStatus().GetInstanceState(), i.GetStatus().GetErrorInfo()
		switch {
		case state != creating && state != running && state != deleting:
			fail("instance %s has the state %v", i.GetId(), state)
		case broken != nil && (state != creating || broken.GetErrorCode() == ""):
			fail("instance %s has an errorInfo with code %q in state %v", i.GetId(), broken.GetErrorCode(), state)
		}
	})
}

func errorCodes(ctx context.Context, p *provider) {
	p.eachInstance(ctx, 1<<30, func(_ *protos.NodeGroup, i *protos.Instance) {
		code := i.GetStatus().GetErrorInfo().GetErrorCode()
		if len(code) > maxCodeLength || strings.ContainsAny(code, " \t\n") {
			fail("instance %s has the code %q", i.GetId(), code)
		}
	})
}

func nodeOfInstance(ctx context.Context, p *provider) {
	p.eachInstance(ctx, maxInstances, func(g *protos.NodeGroup, i *protos.Instance) {
		if i.GetStatus().GetInstanceState() == deleting {
			return
		}
		for what, node := range nodesOf(g.GetId(), i.GetId()) {
			got, err := p.groupOf(ctx, node)
			if err != nil || got.GetId() != g.GetId() {
				fail("%s with providerID %s: %s", what, i.GetId(), answered(got, err))
			}
		}
	})
}

// nodesOf returns the Nodes that CA may send in a call about an instance.
func nodesOf(group, id string) map[string]*protos.ExternalGrpcNode {
	return map[string]*protos.ExternalGrpcNode{
		"a fake Node": fakeNode(id),
		"a Node":      {Name: "conformance", ProviderID: id},
		"the fake of an upcoming Node": {Name: "template-node-for-" + group + "-1-upcoming-0", ProviderID: id,
			Labels:      map[string]string{"cluster-autoscaler.kubernetes.io/template-node": "true"},
			Annotations: map[string]string{"cluster-autoscaler.k8s.io/upcoming-node": "true"}},
	}
}

func answered(g *protos.NodeGroup, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("node group %q", g.GetId())
}

func nodeBounds(ctx context.Context, p *provider) {
	p.eachInstance(ctx, 1, func(g *protos.NodeGroup, i *protos.Instance) {
		got, err := p.groupOf(ctx, fakeNode(i.GetId()))
		if err != nil || got.GetId() != g.GetId() {
			return // the rule node-of-instance reports it
		}
		if got.GetMinSize() != g.GetMinSize() || got.GetMaxSize() != g.GetMaxSize() {
			fail("node group %s has min %d and max %d, but NodeGroupForNode of %s returns %d and %d", g.GetId(), g.GetMinSize(),
				g.GetMaxSize(), i.GetId(), got.GetMinSize(), got.GetMaxSize())
		}
	})
}
