package liqo

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/liqotech/liqo/pkg/liqo-controller-manager/authentication"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// The eviction of a pod fails, for example because two disruption budgets select the pod. Drain still evicts the other
// pods.
func TestDrainContinuesAfterAFailedEviction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, force := range []bool{false, true} {
			stuck, plain := podOn("lca-g-abc-1-1", "a-stuck"), podOn("lca-g-abc-1-1", "plain")
			c := newClusters(t, append(peered(stampedNode()...), stuck, plain), nil)
			twoBudgets := func(object client.Object) error {
				if object.GetName() == "a-stuck" {
					return apierrors.NewInternalError(errors.New("this pod has more than one PodDisruptionBudget"))
				}
				return nil
			}
			c.local = interceptor.NewClient(c.watch, interceptor.Funcs{
				SubResourceCreate: func(ctx context.Context, w client.Client, name string, o, s client.Object,
					opts ...client.SubResourceCreateOption) error {
					if err := twoBudgets(o); err != nil {
						return err
					}
					return w.SubResource(name).Create(ctx, o, s, opts...)
				},
				Delete: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					if err := twoBudgets(o); err != nil {
						return err
					}
					return w.Delete(ctx, o, opts...)
				},
			})
			err := c.Drain(soon(t), someAttempt(1), force, nil)
			var stage *backend.StageError
			require.ErrorAs(t, err, &stage)
			require.Contains(t, stage.Message, "work/a-stuck")
			require.Contains(t, stage.Message, "more than one PodDisruptionBudget")
			require.True(t, exists(t, c.local, stuck))
			require.False(t, exists(t, c.local, plain), "force %v", force)
		}
	})
}

// The consumer does not answer the request for its cluster id. A call of the backend still returns when its context
// ends.
func TestSilentConsumerBlocksNoVerb(t *testing.T) {
	t.Parallel()
	c := newClusters(t, nil, nil)
	asked := make(chan struct{}, 2)
	c.local = interceptor.NewClient(c.watch, interceptor.Funcs{
		List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			asked <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		},
	})
	long, end := context.WithCancel(t.Context())
	defer end()
	go func() { _, _ = c.List(long, backend.Scope{}) }()
	<-asked
	short, cancel := context.WithCancel(t.Context())
	cancel()
	done := make(chan error, 1)
	go func() { _, err := c.List(short, backend.Scope{}); done <- err }()
	select {
	case err := <-done:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(30 * time.Second):
		require.FailNow(t, "it waits for another verb's request")
	}
}

// The account may not list namespaces, and the read of one namespace fails. The backend does not report this failure
// as ErrDenied.
func TestUnreadableTenantNamespaceIsNoDenial(t *testing.T) {
	t.Parallel()
	c := newClusters(t, nil, nil)
	c.there = interceptor.NewClient(c.there.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*corev1.NamespaceList); ok {
				return apierrors.NewForbidden(corev1.Resource("namespaces"), "", errors.New("no"))
			}
			return w.List(ctx, list, opts...)
		},
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("connection reset by peer")
		},
	})
	p := c.peering(provider())
	require.NoError(t, p.locate(t.Context()))
	require.ErrorIs(t, p.locateRemote(t.Context()), backend.ErrUnreachable)
}

// Each call of the backend reads the credentials and opens a client. Every goroutine that the client starts must end
// with the call.
func TestCredentialsClientLeavesNoGoroutine(t *testing.T) { // not parallel: it counts goroutines
	dir := t.TempDir()
	testkit.NewAuthority(t).Write(t, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	config := strings.Replace(kubeconfig, "{token: s3cret}", "{client-certificate: tls.crt, client-key: tls.key}", 1)
	config = strings.Replace(config, "server:", `proxy-url: "http://127.0.0.1:1", server:`, 1)
	path := filepath.Join(dir, "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	c := newClusters(t, nil, nil)
	before := runtime.NumGoroutine()
	for range 50 {
		_, err := c.openCredentials(t.Context(), fleet.Credentials{KubeconfigFile: path})
		require.NoError(t, err)
	}
	require.Less(t, runtime.NumGoroutine(), before+25)
}

// An API server accepts a list request and never answers. Watch does not wait for it forever.
func TestWatchListIsBounded(t *testing.T) {
	t.Parallel()
	c := newClusters(t, stampedNode(), nil)
	bounded := make(chan bool, 100)
	c.watch = interceptor.NewClient(c.watch, interceptor.Funcs{
		List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			_, ok := ctx.Deadline()
			bounded <- ok
			return w.List(ctx, list, opts...)
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	told := make(chan fleet.Found, 100)
	go func() { done <- c.Watch(ctx, func(f fleet.Found) { told <- f }) }()
	<-told
	cancel()
	<-done
	for range len(bounded) {
		require.True(t, <-bounded)
	}
}

// The provider does not answer a slice. Join does not report ErrDenied if the peering belongs to another owner, or if
// the provider still has our Tenant.
func TestUnansweredSliceIsNoDenial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slice := accepted("2")
		slice.Status.Conditions = nil
		c := newClusters(t, peered(slice), []client.Object{tenantNS(me)})
		_, err := c.Join(soon(t), spec(), nil)
		require.NotErrorIs(t, err, backend.ErrDenied)

		// crd-replicator drops a request that the provider forbids. When the peering exists again, Join must
		// therefore make crd-replicator send the slice again.
		c = newClusters(t, []client.Object{slice, tenantNS(peer), controlPlane(mine()), controlPlaneSecret(), established()},
			[]client.Object{tenantNS(me), tenantOf(mine())})
		_, err = c.Join(soon(t), spec(), nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, c.local.Get(t.Context(), client.ObjectKeyFromObject(slice), slice))
		require.NotEmpty(t, slice.Annotations[annotationReminded])
	})
}

// A provider can write any content into our Tenant. A certificate request without an organization makes Liqo's own
// check panic; Establish replaces such a request.
func TestTenantWithAnInvalidRequestIsRepaired(t *testing.T) {
	t.Parallel()
	keypair, _ := keys(t)
	tenant := tenantOf(mine())
	c := newClusters(t, []client.Object{keypair, tenantNS(peer, mine())}, []client.Object{tenantNS(me, mine()), tenant})
	p := c.peering(provider())
	require.NoError(t, p.locate(t.Context()))
	require.NoError(t, p.locateRemote(t.Context()))
	h, err := p.readKeys(t.Context())
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: me}},
		h.key)
	require.NoError(t, err)
	tenant.Spec.CSR = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	require.NoError(t, c.there.Update(t.Context(), tenant))
	_, _, err = p.ensureTenant(t.Context(), h)
	require.NoError(t, err)
	require.NoError(t, c.there.Get(t.Context(), client.ObjectKeyFromObject(tenant), tenant))
	require.NoError(t, authentication.CheckCSRForControlPlane(tenant.Spec.CSR, h.publicDER, me), "it is replaced")
}

// A panic in a check occurs in the goroutine of the caller, which can recover it. The panic does not end the process.
func TestPanicInACheckReachesTheCaller(t *testing.T) {
	t.Parallel()
	outOfRange := func(string) (int, error) { panic("out of range") }
	for name, look := range map[string]poll{
		"the look": func(context.Context) (bool, string, error) {
			_, err := outOfRange("")
			return false, "", err
		},
		"a concurrent request": func(context.Context) (bool, string, error) {
			_, errs := concurrently([]string{"", ""}, outOfRange)
			return false, "", errs[0]
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				fault, _ := recover().(error)
				require.ErrorContains(t, fault, "look for tenant: out of range")
				require.ErrorContains(t, fault, "faults_test.go", "where it was")
			}()
			_ = (&waiter{}).until(prompt(t), backend.StageTenant, look)
		})
	}
}
