package conformance

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

func deletingRules() []Rule {
	return []Rule{
		{ID: "delete-lowers", Demands: "DeleteNodes lowers the target size and stops counting the instance immediately.",
			Source: "core/scaledown/actuation/delete_in_batch.go: CA reads the target next, and scales out or in by it",
			Fix:    "book the deletion before you answer, and remove the Node afterwards", check: deleteLowers},
		{ID: "delete-again", Demands: "DeleteNodes of an instance that was deleted before is OK and changes nothing.",
			Source: "core/scaledown/actuation/delete_in_batch.go: CA repeats the call if the Node still exists after 5 minutes",
			Fix:    "lower the target only for ids that are still counted", check: deleteAgain},
		{ID: "delete-all-or-none", Demands: "DeleteNodes that refuses one of its Nodes deletes none of them.",
			Source: "core/scaledown/actuation/delete_in_batch.go: after an error CA makes all Nodes schedulable again",
			Fix:    "check all ids before you change anything", check: deleteAllOrNone},
		{ID: "delete-other-group", Demands: "DeleteNodes of another group's instance is refused and changes nothing.",
			Source: "cloudprovider/cloud_provider.go DeleteNodes: it must fail if a node does not belong to the group",
			Fix:    "answer InvalidArgument", check: deleteOtherGroup},
		{ID: "delete-together", Demands: "Ten concurrent DeleteNodes calls lower the target by exactly the instances that " +
			"they delete, and each returns within five seconds.",
			Source: "core/scaledown/actuation/actuator.go: up to 10 concurrent calls, one Node each; grpc_timeout is 5 s",
			Fix:    "book calls that wait for each other in one write", check: deleteTogether},
		{ID: "unknown-group-changes", Demands: "Calls that change an unknown group are refused.",
			Source: "core/scaleup/orchestrator/executor.go, core/static_autoscaler.go: CA takes OK as done",
			Fix:    "answer NotFound", check: unknownGroupChanges},
		{ID: "cleanup", Demands: "Cleanup changes nothing.",
			Source: "core/static_autoscaler.go ExitCleanUp: CA calls it whenever it exits, also in each rolling update",
			Fix:    "do nothing", check: cleanup},
		{ID: "gives-back", Demands: "When all created instances are deleted, the group is as it was before.",
			Source: "clusterstate/clusterstate.go: CA never repairs a target that is below the number of running Nodes",
			Fix:    "compute the target by counting the instances", check: givesBack},
	}
}

func deleteLowers(ctx context.Context, p *provider) {
	ids, was := p.create(ctx, 1)
	failOn(p.remove(ctx, p.Group, ids...))
	if now := p.readNow(ctx); now.target != was.target-1 || slices.Contains(now.counted(), ids[0]) {
		fail("%v before, %v after it", was, now)
	}
}

func deleteAgain(ctx context.Context, p *provider) {
	ids, was := p.create(ctx, 2)
	for n, batch := range [][]string{ids[:1], ids[:1], {ids[1], ids[0], ids[1]}} {
		if err := p.remove(ctx, p.Group, batch...); err != nil {
			fail("call %d, with %v: %v", n+1, batch, err)
		}
		left := was.target - 1 - n/2
		if now := p.readNow(ctx); now.target != left || len(now.counted()) != left {
			fail("target size %d at first; after call %d with %v: %v", was.target, n+1, batch, now)
		}
	}
}

// foreignInstance returns the id of an instance of another group. If no other group has an instance, it returns an
// instance id of another cloud.
func (p *provider) foreignInstance(ctx context.Context) (id string) {
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

func deleteAllOrNone(ctx context.Context, p *provider) {
	ids, was := p.create(ctx, 1)
	stranger := p.foreignInstance(ctx)
	refused := p.remove(ctx, p.Group, ids[0], stranger)
	if refused == nil && stranger == foreignNodes["of another cloud"].GetProviderID() {
		skip("deleting %s returns no error, and no other node group has an instance", stranger)
	}
	p.refused(ctx, was, "DeleteNodes of "+ids[0]+" and "+stranger, refused)
}

func deleteOtherGroup(ctx context.Context, p *provider) {
	list, err := p.groups(ctx)
	skipOn(err)
	at := slices.IndexFunc(list, func(g *protos.NodeGroup) bool { return g.GetId() != p.Group })
	if at < 0 {
		skip("there is only one node group")
	}
	other := list[at].GetId()
	ids, was := p.create(ctx, 1)
	p.refused(ctx, was, "DeleteNodes("+other+") of "+ids[0], p.remove(ctx, other, ids...))
}

// These constants are defaults of CA: max-scale-down-parallelism is the number of idle Nodes that CA deletes
// together, and grpc_timeout is the time for which CA waits for an answer.
const (
	deletesTogether = 10
	waitsFor        = 5 * time.Second
)

func deleteTogether(ctx context.Context, p *provider) {
	ids, was := p.create(ctx, min(deletesTogether, p.room))
	errs, took := make([]error, len(ids)), make([]time.Duration, len(ids))
	began := p.Clock()
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() {
			errs[i] = p.remove(ctx, p.Group, id)
			took[i] = p.Clock().Sub(began)
		})
	}
	wg.Wait()
	slowest := slices.Max(took).Round(time.Millisecond)
	for _, err := range errs {
		if err != nil {
			fail("of %d calls the slowest took %s: %v", len(ids), slowest, err)
		}
	}
	if now := p.readNow(ctx); now.target != was.target-len(ids) {
		fail("%v before, %v after %d calls", was, now, len(ids))
	}
	if slowest > waitsFor {
		fail("the slowest of %d calls took %s, and CA gives up after %s", len(ids), slowest, waitsFor)
	}
	p.setText("the slowest of %d calls took %s", len(ids), slowest)
}

func unknownGroupChanges(ctx context.Context, p *provider) {
	for what, err := range map[string]error{
		"IncreaseSize":       p.increase(ctx, unknownID, 1),
		"DecreaseTargetSize": p.decrease(ctx, unknownID, -1),
		"DeleteNodes":        p.remove(ctx, unknownID, foreignNodes["of another cloud"].GetProviderID()),
	} {
		if err == nil {
			fail("%s of node group %s is answered OK", what, unknownID)
		}
	}
}

func cleanup(ctx context.Context, p *provider) {
	_, was := p.create(ctx, 1)
	_, err := call(ctx, p, "Cleanup", p.client.Cleanup, &protos.CleanupRequest{})
	failOn(err)
	p.unchanged(ctx, was)
}

func givesBack(ctx context.Context, p *provider) {
	skipOn(p.refresh(ctx))
	p.unchanged(ctx, p.before)
}
