package liqo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// onePass is the length of a pass. It is shorter than each grace period of these tests, but long enough that even on
// a slow machine the pass reaches its wait.
const onePass = time.Second

// inPasses calls the function verb again and again until it succeeds, as activities do. Each call is a pass and gets
// a context of the given length.
func inPasses(t *testing.T, length time.Duration, verb func(context.Context) error) {
	t.Helper()
	all, cancel := context.WithTimeout(backend.WithStartTime(t.Context(), time.Now()), time.Minute)
	defer cancel()
	for {
		ctx, end := context.WithTimeout(all, length)
		err := verb(ctx)
		end()
		if err == nil {
			return
		}
		var stage *backend.StageError
		require.ErrorAs(t, err, &stage)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, all.Err(), "it never comes to its end: %v", err)
	}
}

// The backend gives Liqo, pods and providers grace periods. Each of these periods continues over all passes of a
// step.
func TestGracePeriodsSpanPasses(t *testing.T) {
	t.Parallel()
	const grace = 3 * onePass
	someReturn := func(c *clusters) func(context.Context) error {
		return func(ctx context.Context) error { return c.Return(ctx, someAttempt(1), nil) }
	}
	removal := func(c *clusters) func(context.Context) error {
		return func(ctx context.Context) error { return c.RemovePeering(ctx, provider(), nil) }
	}
	for name, world := range map[string]func(*testing.T) func(context.Context) error{
		"pods that do not leave": func(t *testing.T) func(context.Context) error {
			c := newClusters(t, peered(append(stampedNode(), podOn("lca-g-abc-1-1", "kept"))...), nil)
			c.local = refuseEvictions(c.watch)
			c.config.ForceAfter = grace
			return someReturn(c)
		},
		"a Node that is never registered": func(t *testing.T) func(context.Context) error {
			c := newClusters(t, peered(running()), nil)
			c.graces.register = grace
			return someReturn(c)
		},
		"a slice with a finalizer that stays": func(t *testing.T) func(context.Context) error {
			c := newClusters(t, peered(held(accepted("2"))), []client.Object{tenantNS(me)})
			c.graces.release = time.Second + grace // Kubernetes stores whole seconds
			return someReturn(c)
		},
		"a certificate on a provider that is gone": func(t *testing.T) func(context.Context) error {
			g := newGateway(t)
			content, err := os.ReadFile(g.credentials.KubeconfigFile)
			require.NoError(t, err)
			secret := controlPlaneSecret()
			secret.Annotations = map[string]string{consts.RemoteTenantNamespaceAnnotKey: remoteNS}
			secret.Data = map[string][]byte{consts.KubeconfigSecretField: content}
			c := newClusters(t, []client.Object{tenantNS(peer), controlPlane(), secret, established()}, nil)
			c.down = true // only our own requests fail, not Liqo's requests
			c.graces.certificate = grace
			return someReturn(c)
		},
		"a NamespaceMap that Liqo forgets": func(t *testing.T) func(context.Context) error {
			here, there := ourPeering()
			forgotten := &offloadingv1beta1.NamespaceMap{ObjectMeta: named(localNS, peer, outgoing(peer))}
			c := newClusters(t, append(here, forgotten), there)
			c.graces.namespaceMap = grace
			return removal(c)
		},
		"a kubeconfig with a finalizer that stays": func(t *testing.T) func(context.Context) error {
			c := newClusters(t, append(heldRest(), tenantNS(peer, mine())), []client.Object{tenantNS(me, mine())})
			c.graces.release = time.Second + grace
			return removal(c)
		},
		"a provider that is gone and had nothing": func(t *testing.T) func(context.Context) error {
			c := newClusters(t, []client.Object{tenantNS(peer)}, nil)
			c.down = true
			c.config.UnreachableAfter = grace
			return removal(c)
		},
		"a Liqo that makes no Renew": func(t *testing.T) func(context.Context) error {
			secret := controlPlaneSecret()
			secret.CreationTimestamp = metav1.Now()
			c := newClusters(t, []client.Object{tenantNS(peer), controlPlane(), secret, established()},
				[]client.Object{tenantNS(me), tenantOf()})
			c.graces.renew = time.Second + grace
			return func(ctx context.Context) error { return c.Establish(ctx, provider(), nil) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			inPasses(t, onePass, world(t))
			require.GreaterOrEqual(t, time.Since(began), grace)
		})
	}
}

// Each request to a provider takes 225 ms. Each pass starts from the first stage and lasts four seconds. Establish
// and RemovePeering still succeed, because each pass gets further than the pass before it.
func TestPassesFinishAt225msLatency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, there := ourPeering()
		c, _ := withLiqo(t, here, there)
		c.there = after(c.there.(client.WithWatch), func(ctx context.Context) error {
			if !wait.For(ctx, 225*time.Millisecond) {
				return ctx.Err()
			}
			return nil
		})
		inPasses(t, 4*time.Second, func(ctx context.Context) error { return connecting(ctx, c, networked("", ""), nil) })
		require.Equal(t, wholeNetwork, namesOf(netObjects(t, c)))
		inPasses(t, 4*time.Second, func(ctx context.Context) error { return c.RemovePeering(ctx, networked("", ""), nil) })
	})
}

// Many nodes are returned concurrently, as after a large batch, and share the request rate of this cluster. Each pass
// must still make progress.
func TestConcurrentReturnsMakeProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClusters(t, peered(), []client.Object{tenantNS(me), tenantOf(mine())})
		c.local = after(c.watch, flowcontrol.NewTokenBucketRateLimiter(maxQPS, maxBurst).Wait)
		c.open = func(context.Context, fleet.Credentials) (client.Client, error) { return c.there, nil } // no rate limit
		var all sync.WaitGroup
		places := make(chan struct{}, 50) // a worker runs at most this many steps on one provider
		ctx, cancel := context.WithTimeout(backend.WithStartTime(t.Context(), time.Now()), time.Minute)
		defer cancel()
		for i := range 100 {
			at := someAttempt(1)
			at.Instance = fmt.Sprintf("g-abc-%d", i)
			labels := with(labelsOf("1"), map[string]string{backend.LabelInstance: at.Instance})
			slice, virtual, node := accepted("2"), running(), readyNode(at.ObjectName(), "1")
			slice.Name, slice.Labels = at.ObjectName(), with(slice.Labels, labels)
			virtual.Name, virtual.Labels = at.ObjectName(), with(virtual.Labels, labels)
			node.Annotations = with(node.Annotations, labels)
			for _, object := range []client.Object{slice, virtual, node} {
				require.NoError(t, c.watch.Create(t.Context(), object))
			}
			all.Go(func() {
				for ctx.Err() == nil {
					places <- struct{}{}
					pass, end := context.WithTimeout(ctx, 4*time.Second)
					err := c.Return(pass, at, nil)
					end()
					<-places
					if err == nil {
						return
					}
					wait.For(ctx, time.Second)
				}
			})
		}
		all.Wait()
		require.NoError(t, ctx.Err(), "they never come to their end")
	})
}

// after returns a client that calls the function wait before each request to the cluster.
func after(cluster client.WithWatch, wait func(context.Context) error) client.Client {
	after := func(ctx context.Context, do func() error) error {
		if err := wait(ctx); err != nil {
			return err
		}
		return do()
	}
	return interceptor.NewClient(cluster, interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, k client.ObjectKey, o client.Object,
			opts ...client.GetOption) error {
			return after(ctx, func() error { return w.Get(ctx, k, o, opts...) })
		},
		List: func(ctx context.Context, w client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			return after(ctx, func() error { return w.List(ctx, l, opts...) })
		},
		Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return after(ctx, func() error { return w.Create(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			return after(ctx, func() error { return w.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return after(ctx, func() error { return w.Delete(ctx, o, opts...) })
		},
	})
}

// refuseEvictions returns a client of a cluster in which a disruption budget prevents the eviction of each pod.
func refuseEvictions(cluster client.WithWatch) client.Client {
	return interceptor.NewClient(cluster, interceptor.Funcs{
		SubResourceCreate: func(
			context.Context, client.Client, string, client.Object, client.Object, ...client.SubResourceCreateOption,
		) error {
			return apierrors.NewTooManyRequests("a disruption budget keeps it", 0)
		},
	})
}

// After its start, an API server answers 403 for a while. If a step has run for longer than that, and a permission is
// missing for a whole pass, the pass reports the missing permission. Without this rule, short passes would never
// report it.
func TestPermissionMissingForAWholePassIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testUntilRefusedForAWholePass)
}

func testUntilRefusedForAWholePass(t *testing.T) {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	no := apierrors.NewForbidden(configMaps, "", errors.New(`RBAC: role "ours" not found`))
	over := errors.New("the pass is over")
	until := func(begun time.Time, look poll) error {
		ctx, cancel := context.WithCancelCause(t.Context()) // activities end a pass in this way
		defer time.AfterFunc(onePass, func() { cancel(over) }).Stop()
		return (&waiter{started: begun, refusal: time.Minute}).until(ctx, backend.StageAPIServer, look)
	}
	refused := waitingFor("", accessError("look", no))
	long := time.Now().Add(-time.Hour)
	err := until(long, refused)
	require.ErrorIs(t, err, backend.ErrDenied)
	require.NotErrorIs(t, err, over)

	err = until(time.Now(), refused)
	require.ErrorIs(t, err, over, "it was begun just now")
	require.NotErrorIs(t, err, backend.ErrDenied, "callers treat ErrDenied as final")
	looks := 0
	err = until(long, func(ctx context.Context) (bool, string, error) {
		if looks++; looks == 1 {
			return false, "", accessError("look", errors.New("connection refused"))
		}
		return refused(ctx)
	})
	require.ErrorIs(t, err, over, "the API server has been restarted in this pass")
	require.NotErrorIs(t, err, backend.ErrDenied)
}

// A provider accepts our requests and never answers. The context of the pass ends before a request does. The pass
// still reports that the provider is unreachable.
func TestProviderSilentForAWholePassIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testUntilSilentForAWholePass)
}

func testUntilSilentForAWholePass(t *testing.T) {
	silent := func(ctx context.Context) (bool, string, error) {
		<-ctx.Done()
		return false, "", accessError("look", ctx.Err())
	}
	for length, told := range map[time.Duration]bool{noAnswer + onePass: true, onePass: false} {
		ctx, cancel := context.WithTimeout(t.Context(), length)
		err := (&waiter{patience: time.Minute}).until(ctx, backend.StageAPIServer, silent)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, told, errors.Is(err, backend.ErrUnreachable), "after %s: %v", length, err)
	}
}
