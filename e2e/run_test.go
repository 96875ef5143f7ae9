package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

// part is one part of a suite. At its start and at its end, the clusters contain no object of ours.
type part struct {
	name string
	run  func(context.Context, *testing.T, *stack)
}

// runParts runs the parts on one stack. Each part relies on the clean end of the part before, so the first part that
// fails ends the suite.
func runParts(ctx context.Context, t *testing.T, s *stack, parts []part) {
	t.Helper()
	for _, p := range parts {
		ended := false
		passed := t.Run(p.name, func(t *testing.T) {
			p.run(ctx, t, s)
			ended = true
		})
		if !passed && !ended {
			return
		}
	}
}

// run holds the data of a part that is running: its steps, and its start in the record of calls.
type run struct {
	*steps
	s     *stack
	since int
	begun time.Time
	// empty checks the required state of the clusters after a scale-in. It calls the function clean, unless other
	// users work in the clusters too.
	empty func(context.Context) error
	// unanswered is set when calls of CA may have failed because their server was down.
	unanswered bool
}

func newRun(t *testing.T, s *stack) *run {
	return &run{steps: newSteps(t), s: s, since: s.proxy.Last(), begun: time.Now(),
		empty: func(ctx context.Context) error {
			return clean(ctx, append(s.providers, s.consumer)...)
		}}
}

// booked waits until CA has requested n nodes, each once. It returns the ids under which the server lists them.
func (r *run) booked(ctx context.Context, n int) []string {
	r.t.Helper()
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	call, err := r.s.proxy.Await(bounded, r.since, func(c ca.Call) bool { return c.Method == ca.IncreaseSize })
	require.NoError(r.t, err)
	r.done("IncreaseSize")
	require.True(r.t, call.OK(), call)
	require.EqualValues(r.t, n, call.Request.(*protos.NodeGroupIncreaseSizeRequest).GetDelta())
	fmt.Printf("STEP %s/IncreaseSize RPC %.3f\n", r.t.Name(), call.Duration.Seconds())

	listed, err := r.s.proxy.Await(bounded, call.Seq, func(c ca.Call) bool { return c.Method == ca.Nodes && c.OK() })
	require.NoError(r.t, err)
	var ids []string
	for _, i := range listed.Response.(*protos.NodeGroupNodesResponse).GetInstances() {
		if i.GetStatus().GetInstanceState() == protos.InstanceStatus_instanceCreating {
			ids = append(ids, i.GetId())
		}
	}
	require.Len(r.t, ids, n, "%s", listed)
	return ids
}

// scaledOut waits until CA has requested n nodes, each once, and they are Ready under the ids that the server listed
// from the start. With gateways, the Nodes must also report that their network is available.
func (r *run) scaledOut(ctx context.Context, n int) []string {
	r.t.Helper()
	ids := r.booked(ctx, n)
	r.until(ctx, "nodes ready", 3*time.Minute, func(ctx context.Context) error {
		for _, id := range ids {
			node, err := r.s.consumer.node(ctx, id)
			if err != nil {
				return err
			}
			if r.s.gateways && !networked(node) {
				return fmt.Errorf("node %s does not say that its network is there", node.Name)
			}
		}
		return nil
	})
	fmt.Printf("STEP %s/from work to nodes ready, in all %.2f\n", r.t.Name(), time.Since(r.begun).Seconds())
	return ids
}

// scaledIn waits until CA has released the instances, the target size is 0, and no object of ours is left in any
// cluster. It then checks the whole part: CA has seen only the known instances and requested them once, and no call has
// failed.
func (r *run) scaledIn(ctx context.Context, ids []string, known ...string) {
	r.t.Helper()
	bounded, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	last := r.since
	for back := map[string]bool{}; len(back) < len(ids); {
		call, err := r.s.proxy.Await(bounded, last, func(c ca.Call) bool { return c.Method == ca.DeleteNodes })
		require.NoError(r.t, err)
		require.True(r.t, call.OK(), call)
		fmt.Printf("STEP %s/DeleteNodes RPC %.3f\n", r.t.Name(), call.Duration.Seconds())
		for _, n := range call.Request.(*protos.NodeGroupDeleteNodesRequest).GetNodes() {
			require.Contains(r.t, ids, n.GetProviderID())
			back[n.GetProviderID()] = true
		}
		last = call.Seq
	}
	r.done("DeleteNodes")
	given := time.Now()
	target, err := r.s.proxy.Await(bounded, last, func(c ca.Call) bool { return c.Method == ca.TargetSize && c.OK() })
	require.NoError(r.t, err)
	require.EqualValues(r.t, 0, target.Response.(*protos.NodeGroupTargetSizeResponse).GetTargetSize())
	r.until(ctx, "nothing left", 2*time.Minute, r.empty)
	r.until(ctx, "nothing listed", 30*time.Second, r.nothingListed)
	fmt.Printf("STEP %s/from DeleteNodes to nothing left, in all %.2f\n", r.t.Name(), time.Since(given).Seconds())
	r.lookBack(append(ids, known...))
}

// nothingListed requires that the server lists no instance, not even an instance that is being deleted. It calls the
// server itself, because at this point CA calls too rarely.
func (r *run) nothingListed(ctx context.Context) error {
	groups, err := r.s.client.NodeGroups(ctx, &protos.NodeGroupsRequest{})
	if err != nil {
		return err
	}
	for _, g := range groups.GetNodeGroups() {
		res, err := r.s.client.NodeGroupNodes(ctx, &protos.NodeGroupNodesRequest{Id: g.GetId()})
		if err != nil {
			return err
		}
		if len(res.GetInstances()) > 0 {
			return fmt.Errorf("still listed: %v", res.GetInstances())
		}
	}
	return nil
}

// missed waits until a call of CA has failed. In this part, calls may fail because the server is down.
func (r *run) missed(ctx context.Context) {
	r.t.Helper()
	r.unanswered = true
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	call, err := r.s.proxy.Await(ctx, r.s.proxy.Last(), ca.Call.Failed)
	require.NoError(r.t, err)
	r.t.Logf("CA received: %s", call)
}

func (r *run) lookBack(ids []string) {
	r.t.Helper()
	asked := 0
	for _, c := range r.s.proxy.Calls(func(c ca.Call) bool { return c.Seq > r.since }) {
		if c.Failed() && !r.unanswered {
			r.t.Errorf("a call failed: %s", c)
		}
		switch c.Method {
		case ca.IncreaseSize:
			asked++
		case ca.DecreaseTargetSize:
			r.t.Errorf("CA thought a node would not come: %s", c)
		case ca.Nodes:
			if !c.OK() {
				continue
			}
			for _, i := range c.Response.(*protos.NodeGroupNodesResponse).GetInstances() {
				if !contains(ids, i.GetId()) {
					r.t.Errorf("instance %s was listed, not one of %v", i.GetId(), ids)
				}
				if e := i.GetStatus().GetErrorInfo(); e.GetErrorCode() != "" {
					r.t.Errorf("instance %s failed: %s %s", i.GetId(), e.GetErrorCode(), e.GetErrorMessage())
				}
			}
		}
	}
	if asked != 1 {
		r.t.Errorf("CA requested nodes %d times, want once", asked)
	}
}
