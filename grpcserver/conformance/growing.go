package conformance

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// bookedWithin bounds the duration of IncreaseSize, which must not wait for Nodes. CA waits for at most 5 s.
const bookedWithin = time.Second

func growingRules() []Rule {
	return []Rule{
		{ID: "increase-in-target", Demands: "The target size is larger as soon as IncreaseSize returns.",
			Source: "core/scaleup/orchestrator/executor.go: CA reads the size right after the call",
			Fix:    "book the new units before IncreaseSize answers, and read your own writes", check: increaseInTarget},
		{ID: "increase-in-nodes", Demands: "As soon as IncreaseSize returns, NodeGroupNodes lists an instance per new unit.",
			Source: "clusterstate/clusterstate.go: CA neither repairs nor times out units without instances",
			Fix:    "before IncreaseSize answers, list a placeholder that is creating, without error", check: increaseInNodes},
		{ID: "increase-resolves", Demands: "NodeGroupForNode finds the group of an instance that has no Node yet.",
			Source: "core/static_autoscaler.go removeOldUnregisteredNodes: CA never removes an instance without a group",
			Fix:    "also look up placeholders by their id", check: increaseResolves},
		{ID: "increase-at-once", Demands: "IncreaseSize answers within a second.",
			Source: "cloudprovider/externalgrpc/externalgrpc_cloud_provider.go: after 5 s CA fails the call and backs off",
			Fix:    "book durably and answer; create Nodes afterwards", check: increaseAtOnce},
		{ID: "increase-of-nothing", Demands: "IncreaseSize by 0 or less is refused and changes nothing.",
			Source: "cloudprovider/cloud_provider.go IncreaseSize: the delta must be positive",
			Fix:    "answer InvalidArgument", check: increaseOfNothing},
		{ID: "increase-over-max", Demands: "IncreaseSize over max is refused and changes nothing, or max rises with it.",
			Source: "core/scaleup/orchestrator/orchestrator.go: the max that CA knows may be outdated",
			Fix:    "answer OutOfRange, all or nothing", check: increaseOverMax},
		{ID: "increase-together", Demands: "Concurrent IncreaseSize calls add exactly what they answer, within max.",
			Source: "in a rolling update two replicas of CA may call it at the same time",
			Fix:    "check max and book in one step", check: increaseTogether},
		{ID: "increase-two-groups", Demands: "Without a Refresh in between, IncreaseSize of two groups does what each call " +
			"answers, and no new instance fails for a lack of capacity that a Refresh would have shown.",
			Source: "core/scaleup/orchestrator/orchestrator.go: CA grows several groups of one loop up to the max it read",
			Fix:    "count what the other group has booked, and refuse growth beyond the capacity", check: increaseTwoGroups},
		{ID: "increase-given-up", Demands: "An IncreaseSize whose caller has stopped waiting changes nothing.",
			Source: "core/scaleup/orchestrator/executor.go: CA backs off, and creates the Nodes in another group",
			Fix:    "check the deadline before booking, and leave time for the answer", check: increaseGivenUp},
		{ID: "refresh-keeps", Demands: "A Refresh keeps every instance that is being created.",
			Source: "clusterstate/clusterstate.go: a lower target ends the scale-up as if it had succeeded",
			Fix:    "read a state that includes the last write, or fail Refresh", check: refreshKeeps},
		{ID: "ids-not-reused", Demands: "Ids of instances are not used again.",
			Source: "clusterstate/clusterstate.go: CA stores failures and ages by id",
			Fix:    "give each instance a name that was never used", check: idsNotReused},
	}
}

func increaseInTarget(ctx context.Context, p *provider) {
	was, err := p.target(ctx, p.Group)
	skipOn(err)
	failOn(p.increase(ctx, p.Group, 2))
	now, err := p.target(ctx, p.Group)
	if err != nil || now != was+2 {
		fail("target size %d, and after IncreaseSize(2) %d, error %v", was, now, err)
	}
}

func increaseInNodes(ctx context.Context, p *provider) {
	was := p.readNow(ctx)
	skipOn(p.increase(ctx, p.Group, 2))
	now, err := p.readGroup(ctx, p.Group)
	failOn(err)
	added := 0
	for _, i := range now.list {
		if slices.Contains(was.counted(), i.GetId()) || i.GetStatus().GetInstanceState() == deleting {
			continue
		}
		added++
		if code := i.GetStatus().GetErrorInfo().GetErrorCode(); code != "" {
			skip("the new instance failed immediately: %s", code)
		}
	}
	if added != 2 {
		fail("%d new instances are listed after IncreaseSize(2)", added)
	}
}

func increaseResolves(ctx context.Context, p *provider) {
	ids, _ := p.create(ctx, 1)
	got, err := p.groupOf(ctx, fakeNode(ids[0]))
	if err != nil || got.GetId() != p.Group {
		fail("instance %s: %s", ids[0], answered(got, err))
	}
}

func increaseAtOnce(ctx context.Context, p *provider) {
	began := p.Clock()
	err := p.increase(ctx, p.Group, 1)
	took := p.Clock().Sub(began)
	if status.Code(err) != codes.DeadlineExceeded {
		skipWithout(err)
	}
	if err != nil || took > bookedWithin {
		fail("the call took %s, error %v", took.Round(time.Millisecond), err)
	}
	p.setText("%s", took.Round(time.Millisecond))
}

// unchanged fails the check if the target size or the counted instances of the group differ from the earlier state
// `was`.
func (p *provider) unchanged(ctx context.Context, was groupState) {
	if now := p.readNow(ctx); !now.sameAs(was) {
		fail("%v before, %v after it", was, now)
	}
}

// refused fails the check if the call was not refused (err is nil) or changed the group.
func (p *provider) refused(ctx context.Context, was groupState, what string, err error) {
	now := p.readNow(ctx)
	switch {
	case err == nil && now.sameAs(was):
		fail("%s returns OK, although it changed nothing", what)
	case err == nil:
		fail("%s returns OK: %v before, %v after it", what, was, now)
	case !now.sameAs(was):
		fail("%s is refused but changed the group: %v before, %v after it", what, was, now)
	}
	p.setText("%s", status.Code(err))
}

func increaseOfNothing(ctx context.Context, p *provider) {
	was := p.readNow(ctx)
	p.refused(ctx, was, "IncreaseSize(0)", p.increase(ctx, p.Group, 0))
	p.refused(ctx, was, "IncreaseSize(-1)", p.increase(ctx, p.Group, -1))
}

func increaseOverMax(ctx context.Context, p *provider) {
	was := p.readNow(ctx)
	g, err := p.group(ctx, p.Group)
	skipOn(err)
	delta := int(g.GetMaxSize()) - was.target + 1
	if err := p.increase(ctx, p.Group, delta); err != nil {
		p.refused(ctx, was, "IncreaseSize over max", err)
		return
	}
	p.withinMax(ctx, was.target+delta)
}

// withinMax fails the check if the target size of the group is not the size in wanted, or exceeds the max that CA
// receives.
func (p *provider) withinMax(ctx context.Context, wanted int) {
	skipOn(p.refresh(ctx))
	now := p.readNow(ctx)
	g, err := p.group(ctx, p.Group)
	skipOn(err)
	switch {
	case now.target != wanted:
		fail("the target size is %d, but by the answers it should be %d", now.target, wanted)
	case now.target > int(g.GetMaxSize()):
		fail("the target size is %d with max %d", now.target, g.GetMaxSize())
	}
	p.setText("max rose to %d", g.GetMaxSize())
}

func increaseTogether(ctx context.Context, p *provider) {
	was := p.readNow(ctx)
	delta := p.room/2 + 1
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = p.increase(ctx, p.Group, delta) })
	}
	wg.Wait()
	wanted := was.target
	for _, err := range errs {
		if err == nil {
			wanted += delta
		}
	}
	p.withinMax(ctx, wanted)
	p.setText("%d of 2 were booked", (wanted-was.target)/delta)
}

// increaseTwoGroups reads the max of two groups, grows the first group to its max (by at most maxRoom instances), and
// then grows the second group by one. A provider may have counted the same capacity in both max values.
func increaseTwoGroups(ctx context.Context, p *provider) {
	if p.Second == "" {
		skip("no second node group was given")
	}
	skipOn(p.refresh(ctx))
	groups, deltas := []string{p.Group, p.Second}, []int{0, 1}
	var was [2]groupState
	for n, group := range groups {
		g, err := p.group(ctx, group)
		skipOn(err)
		was[n], err = p.readGroup(ctx, group)
		skipOn(err)
		room := int(g.GetMaxSize()) - was[n].target
		if room < 1 {
			skip("node group %s cannot grow", group)
		}
		if n == 0 {
			deltas[n] = min(room, maxRoom)
		}
	}
	p.second = &was[1]
	var errs [2]error
	for n, group := range groups {
		errs[n] = p.increase(ctx, group, deltas[n])
	}
	for n, group := range groups {
		p.matchesAnswer(ctx, group, was[n], deltas[n], errs[n])
	}
	skipOn(p.settled(ctx))
	for n, group := range groups {
		if errs[n] == nil {
			p.hasRoom(ctx, group, was[n])
		}
	}
	p.setText("IncreaseSize(%d) and then IncreaseSize(1) of %s: %s, %s", deltas[0], p.Second, status.Code(errs[0]),
		status.Code(errs[1]))
}

// matchesAnswer compares the group with the answer to the call. After an accepted call, the check fails unless there
// are exactly delta new instances. After a refused call, it fails if there is a new instance.
func (p *provider) matchesAnswer(ctx context.Context, group string, was groupState, delta int, answer error) {
	now, err := p.readGroup(ctx, group)
	failOn(err)
	if answer != nil {
		delta = 0
	}
	if now.target != was.target+delta || len(now.added(was)) != delta {
		fail("node group %s, whose IncreaseSize returned %s: %v before, %v after it", group, status.Code(answer), was,
			now)
	}
}

// hasRoom fails the check when a new instance has failed, or when the target size exceeds the max that CA reads.
func (p *provider) hasRoom(ctx context.Context, group string, was groupState) {
	now, err := p.readGroup(ctx, group)
	failOn(err)
	for _, i := range now.list {
		if code := i.GetStatus().GetErrorInfo().GetErrorCode(); code != "" && slices.Contains(now.added(was), i.GetId()) {
			fail("instance %s of node group %s failed with %s: both groups had the same capacity in max", i.GetId(), group, code)
		}
	}
	g, err := p.group(ctx, group)
	failOn(err)
	if now.target > int(g.GetMaxSize()) {
		fail("node group %s has target size %d with max %d", group, now.target, g.GetMaxSize())
	}
}

func increaseGivenUp(ctx context.Context, p *provider) {
	was := p.readNow(ctx)
	wanted, late := was.target, 0
	for _, patience := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond} {
		impatient, cancel := context.WithTimeout(ctx, patience)
		err := p.increase(impatient, p.Group, 1)
		cancel()
		if err == nil {
			wanted++
		} else {
			late++
		}
	}
	skipOn(p.settled(ctx))
	if now := p.readNow(ctx); now.target != wanted || len(now.counted()) != wanted {
		fail("%d of 3 calls were abandoned, so the target size should be %d: %v", late, wanted, now)
	}
	p.setText("%d of 3 calls were abandoned", late)
}

// settled waits until Refresh succeeds. The provider then knows the outcome of the calls whose answer the check did
// not await.
func (p *provider) settled(ctx context.Context) (err error) {
	for range 30 {
		if !wait.For(ctx, p.Settle) {
			return context.Cause(ctx)
		}
		if err = p.refresh(ctx); err == nil {
			return nil
		}
	}
	return err
}

func refreshKeeps(ctx context.Context, p *provider) {
	_, was := p.create(ctx, 2)
	skipOn(p.refresh(ctx))
	p.unchanged(ctx, was)
}

func idsNotReused(ctx context.Context, p *provider) {
	ids, _ := p.create(ctx, 1)
	skipWithout(p.remove(ctx, p.Group, ids[0]))
	used := len(p.used)
	if again, _ := p.create(ctx, 1); len(p.used) == used {
		fail("%s was used before", again[0])
	}
}
