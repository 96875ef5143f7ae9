package e2e_test

import (
	"cmp"
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
)

// failings returns the faults of the first provider, in the order of the stages. A provider whose API server has
// never answered has no offer, so a stopped API server cannot be the first fault. The death of the API server comes
// last, because of the provider's Liqo. Its watches work again only up to a minute after the API server has returned.
// Until then Liqo receives no events, and reports "already exists" for the objects that it creates.
func failings(s *stack) []failing {
	return []failing{
		managerHangs(s),
		{"APIServerHangs", backend.StageAPIServer, "cannot", stopped(lab.APIServer)},
		{"TenantHangs", backend.StageTenant, "has not answered Tenant", tenantHangs},
		{"TenantRefused", "", "the provider has set our Tenant liqo-tenant-consumer/consumer to Cordoned", tenantRefused},
		{"SliceHangs", backend.StageSliceAuth, "has not answered ResourceSlice", sliceHangs},
		{"ReplicatorHangs", backend.StageSliceAuth, "ResourceSlice", replicatorHangs},
		{"KubeletDies", backend.StageNode, "has not registered Node", kubeletDies},
		{"NodeHangs", backend.StageNode, "has not registered Node", kubeletHangs},
		{"APIServerDies", backend.StageAPIServer, "connection refused", apiServerDies},
	}
}

// managerHangs stops the provider's Liqo from the start, so that it does not answer the first object.
func managerHangs(s *stack) failing {
	if s.gateways {
		return failing{"NetworkHangs", backend.StageNetworkConfig, "has not mapped the addresses of Configuration",
			stopped(lab.LiqoManager)}
	}
	return failing{"NonceHangs", backend.StageNonce, "has not filled Secret", stopped(lab.LiqoManager)}
}

// stopped returns a fault in which a process of the first provider is stopped from the start.
func stopped(process string) func(context.Context, *run) sabotage {
	return func(_ context.Context, r *run) sabotage {
		r.freeze(r.s.providers[0].name, process)
		return sabotage{repair: func(context.Context) { r.thaw(r.s.providers[0].name, process) }}
	}
}

func (r *run) freeze(cluster, process string) {
	r.t.Helper()
	r.t.Cleanup(func() { _ = r.s.lab.Signal(cluster, process, syscall.SIGCONT) })
	require.NoError(r.t, r.s.lab.Signal(cluster, process, syscall.SIGSTOP))
}

func (r *run) thaw(cluster, process string) {
	r.t.Helper()
	require.NoError(r.t, r.s.lab.Signal(cluster, process, syscall.SIGCONT))
}

func tenantHangs(ctx context.Context, r *run) sabotage {
	first := r.s.providers[0]
	frozen := freezeOnNonce(ctx, r.steps, r.s.lab, first)
	return sabotage{
		begun:  func(ctx context.Context) { awaitUnanswered(ctx, r.steps, first, frozen) },
		repair: func(context.Context) { r.thaw(first.name, lab.LiqoManager) },
	}
}

// tenantRefused cordons our Tenant on the provider, as the provider's administrators can. At this time the provider's
// Liqo has not yet answered the Tenant.
func tenantRefused(ctx context.Context, r *run) sabotage {
	sab := tenantHangs(ctx, r)
	return sabotage{repair: sab.repair, begun: func(ctx context.Context) {
		sab.begun(ctx)
		require.NoError(r.t, setTenantCondition(ctx, r.s.providers[0], "Cordoned"))
	}}
}

// setTenantCondition does the same as `liqoctl cordon tenant` and `liqoctl uncordon tenant` on the provider.
func setTenantCondition(ctx context.Context, provider *cluster, condition string) error {
	items, err := provider.list(ctx, tenants)
	if err != nil || len(items) != 1 {
		return fmt.Errorf("%d tenants on %s: %w", len(items), provider.name, err)
	}
	patch := []byte(`{"spec":{"tenantCondition":"` + condition + `"}}`)
	_, err = provider.liqo.Resource(tenants).Namespace(items[0].GetNamespace()).Patch(ctx, items[0].GetName(),
		types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func sliceHangs(ctx context.Context, r *run) sabotage {
	first := r.s.providers[0]
	frozen := freezeAt(ctx, r.steps, r.s.lab, first.name, lab.LiqoManager, sliceMade(r.s.consumer))
	return sabotage{
		begun:  func(context.Context) { awaitFrozen(r.steps, frozen) },
		repair: func(context.Context) { r.thaw(first.name, lab.LiqoManager) },
	}
}

// replicatorHangs stops our own crd-replicator, so that it does not replicate the slice. The crd-replicator continues
// as soon as the worker tries the second provider, which needs the crd-replicator too.
func replicatorHangs(ctx context.Context, r *run) sabotage {
	frozen := freezeAt(ctx, r.steps, r.s.lab, lab.Consumer, lab.LiqoCRDReplicator, sliceMade(r.s.consumer))
	return sabotage{begun: func(ctx context.Context) {
		awaitFrozen(r.steps, frozen)
		name := instanceName(r.booked(ctx, 1)[0])
		r.until(ctx, "first attempt given up", time.Minute, func(context.Context) error {
			_, err := r.s.givenUp(name, 1)
			return err
		})
		r.thaw(lab.Consumer, lab.LiqoCRDReplicator)
	}, repair: func(context.Context) {}}
}

// kubeletDies kills each virtual kubelet of the first provider as soon as it runs.
func kubeletDies(ctx context.Context, r *run) sabotage {
	return sabotage{repair: strike(ctx, r, syscall.SIGKILL)}
}

// kubeletHangs stops each virtual kubelet of the first provider as soon as it runs.
func kubeletHangs(ctx context.Context, r *run) sabotage {
	return sabotage{repair: strike(ctx, r, syscall.SIGSTOP)}
}

// strike sends a signal to each virtual kubelet of the first provider until the returned function is called. This
// function continues the stopped virtual kubelets.
func strike(ctx context.Context, r *run, signal syscall.Signal) func(context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	struck := map[int]bool{}
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			for _, pid := range kubelets(r.s.lab, r.s.providers[0]) {
				if !struck[pid] && syscall.Kill(pid, signal) == nil {
					struck[pid] = true
				}
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
	off := func(context.Context) {
		cancel()
		<-done
		for _, pid := range kubelets(r.s.lab, r.s.providers[0]) {
			if struck[pid] {
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
		}
	}
	r.t.Cleanup(func() { off(ctx) })
	return func(ctx context.Context) {
		off(ctx)
		require.NotEmpty(r.t, struck, "no virtual kubelet of %s has run", r.s.providers[0].name)
		r.t.Logf("%d virtual kubelets struck", len(struck))
	}
}

// apiServerDies kills the first provider's API server, and starts it again in each part that needs it.
func apiServerDies(_ context.Context, r *run) sabotage {
	first := r.s.providers[0]
	pid, err := r.s.lab.Pid(first.name + "-" + lab.APIServer)
	require.NoError(r.t, err)
	pid = cmp.Or(r.s.apiServer, pid)
	again, err := likeProcess(pid)
	require.NoError(r.t, err)
	again.Name, again.LogDir = fmt.Sprintf("%s-%s-after-%d", first.name, lab.APIServer, pid), r.s.dir
	revived := false
	revive := func(ctx context.Context) {
		if revived {
			return
		}
		revived = true
		r.s.restarted = append(r.s.restarted, time.Now())
		p, err := proc.Start(again)
		require.NoError(r.t, err)
		r.s.stopAtEnd(p)
		r.s.apiServer = p.Pid()
		r.until(ctx, "API server is back", time.Minute, func(ctx context.Context) error {
			_, err := first.kube.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
			return err
		})
	}
	r.t.Cleanup(func() { revive(context.Background()) })
	require.NoError(r.t, syscall.Kill(pid, syscall.SIGKILL))
	return sabotage{repair: revive}
}
