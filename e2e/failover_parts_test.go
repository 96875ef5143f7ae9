package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

// cancelledBehindFinalizer stops the provider after it has answered the Tenant. The answer sets Liqo's finalizer on
// the Tenant. The operator cancels the peering. The removal of the peering waits for the finalizer and reports this.
// The removal ends when the provider continues.
func cancelledBehindFinalizer(ctx context.Context, t *testing.T, s *stack) {
	r := newRun(t, s)
	first := s.providers[0]
	frozen := freezeAt(ctx, r.steps, s.lab, first.name, lab.LiqoManager, tenantAnswered(first))
	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
	awaitFrozen(r.steps, frozen)
	require.NoError(t, s.cancel(ctx, "peering/"+first.name))
	r.done("peering cancelled")
	ids := r.readyOnSecond(ctx)
	require.NoError(t, r.named(ids[0], cancelledByHand), "not because the peering's time is over")
	r.until(ctx, "taking back waits for the finalizer", time.Minute, func(ctx context.Context) error {
		words, err := s.waitsFor(ctx, "unpeering/"+first.name)
		if err != nil {
			return err
		}
		return names(words, string(backend.StageTenantGone), "has not released Tenant")
	})
	require.NoError(t, first.count(ctx, tenants, 1))
	r.thaw(first.name, lab.LiqoManager)
	r.firstForgets(ctx)
	require.NoError(t, undeploy(ctx, s.consumer, "work"))
	r.scaledIn(ctx, ids)
}

// resourcesRefused cordons the Tenant of a peering that has a node. The next slice is denied, and the instance goes to
// another provider. The existing node stays.
func resourcesRefused(ctx context.Context, t *testing.T, s *stack) {
	if s.lab.OneSlice() {
		t.Skip("this Liqo carries one slice per provider")
	}
	first := s.providers[0]
	r := newRun(t, s)
	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
	there := r.scaledOut(ctx, 1)
	require.NoError(t, setTenantCondition(ctx, first, "Cordoned"))
	r = newRun(t, s)
	require.NoError(t, deploy(ctx, s.consumer, "more", 1, "1500m"))
	ids := r.readyOnSecond(ctx)
	assert.NoError(t, r.named(ids[0], "waiting for "+string(backend.StageResources)+":", "Cordoned"))
	r.until(ctx, "denied slice gone", time.Minute,
		func(ctx context.Context) error { return first.count(ctx, resourceSlices, 1) })
	_, err := s.consumer.node(ctx, there[0])
	require.NoError(t, err, "the first node stays")
	require.NoError(t, setTenantCondition(ctx, first, "Active"))
	require.NoError(t, undeploy(ctx, s.consumer, "work"))
	require.NoError(t, undeploy(ctx, s.consumer, "more"))
	r.scaledIn(ctx, append(ids, there...))
	r.peeringEnds(ctx, first) // the next part needs the provider's answer
}

// endpointUnreachable sets the field clientAddress of the first provider's offer to an address at which no gateway
// answers.
func endpointUnreachable(ctx context.Context, t *testing.T, s *stack) {
	file := filepath.Join(s.dir, "offers.yaml")
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	failing{"EndpointUnreachable", backend.StageConnection, "the Connection on this cluster is",
		func(ctx context.Context, r *run) sabotage {
			mode := "{mode: " + string(fleet.NetworkGateway)
			write(strings.Replace(string(before), mode, mode+", clientAddress: 203.0.113.9", 1))
			r.during(ctx, "no older offer is used", 2*discovery.Recent, func(ctx context.Context) error {
				return s.providers[0].count(ctx, configurations, 0)
			})
			return sabotage{repair: func(context.Context) { write(string(before)) }}
		}}.run(ctx, t, s)
}

// noneLeft stops both providers. The instance fails with a known code and Liqo's message. CA backs off and deletes the
// instance, and the target size is 0.
func noneLeft(ctx context.Context, t *testing.T, s *stack) {
	r := newRun(t, s)
	for _, p := range s.providers {
		r.freeze(p.name, lab.LiqoManager)
	}
	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
	ids := r.booked(ctx, 1)
	bounded, cancel := context.WithTimeout(ctx, hurriedTotal)
	defer cancel()
	var failed *protos.Instance
	call, err := s.proxy.Await(bounded, r.since, func(c ca.Call) bool {
		failed = failedInstance(c)
		return failed != nil
	})
	require.NoError(t, err)
	r.done("instance failed")
	fmt.Printf("FAILOVER %s: %s\n", t.Name(), failed)
	require.Equal(t, ids[0], failed.GetId())
	require.Equal(t, protos.InstanceStatus_instanceCreating, failed.GetStatus().GetInstanceState())
	info := failed.GetStatus().GetErrorInfo()
	require.Contains(t, []fleet.Code{fleet.CodeTimeout, fleet.CodeUnreachable}, fleet.Code(info.GetErrorCode()))
	require.NoError(t, undeploy(ctx, s.consumer, "work"))

	deleted, err := s.proxy.Await(bounded, call.Seq, func(c ca.Call) bool { return c.Method == ca.DeleteNodes })
	require.NoError(t, err)
	require.True(t, deleted.OK(), deleted)
	require.Equal(t, ids[0], deleted.Request.(*protos.NodeGroupDeleteNodesRequest).GetNodes()[0].GetProviderID())
	target, err := s.proxy.Await(bounded, deleted.Seq, func(c ca.Call) bool { return c.Method == ca.TargetSize && c.OK() })
	require.NoError(t, err)
	require.EqualValues(t, 0, target.Response.(*protos.NodeGroupTargetSizeResponse).GetTargetSize())
	r.done("instance deleted")
	r.until(ctx, "CA backs off", 30*time.Second, func(context.Context) error {
		return logged(filepath.Join(s.dir, "cluster-autoscaler.log"), "Disabling scale-up for node group "+group)
	})

	for _, p := range s.providers {
		r.thaw(p.name, lab.LiqoManager)
	}
	for _, p := range s.providers {
		r.peeringEnds(ctx, p)
	}
	r.until(ctx, "nothing left", 2*time.Minute, func(ctx context.Context) error {
		return clean(ctx, append(s.providers, s.consumer)...)
	})
	r.until(ctx, "nothing listed", 30*time.Second, r.nothingListed)
	hangs := managerHangs(s)
	waiting := "waiting for " + string(hangs.stage) + ":"
	for i := range s.providers {
		e, err := s.givenUp(instanceName(ids[0]), i+1)
		require.NoError(t, err)
		assert.NoError(t, names(e.Failure, waiting, hangs.words))
	}
	assert.NoError(t, names(info.GetErrorMessage(), s.providers[0].name, s.providers[1].name, waiting, hangs.words))
}

// failedInstance returns an instance that a call has listed with an error.
func failedInstance(c ca.Call) *protos.Instance {
	if c.Method != ca.Nodes || !c.OK() {
		return nil
	}
	for _, i := range c.Response.(*protos.NodeGroupNodesResponse).GetInstances() {
		if i.GetStatus().GetErrorInfo().GetErrorCode() != "" {
			return i
		}
	}
	return nil
}

// logged requires words in a log.
func logged(path, words string) error {
	b, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(b), words) {
		err = fmt.Errorf("%s does not say %q", filepath.Base(path), words)
	}
	return err
}
