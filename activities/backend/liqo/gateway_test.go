package liqo

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/liqotech/liqo/pkg/consts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// gateway is a load balancer, or a cluster manager's proxy, between us and a provider's API server. It answers each
// request with status. When status is 0, it forwards requests to an API server without Liqo's kinds.
type gateway struct {
	credentials fleet.Credentials
	status      atomic.Int32
}

func newGateway(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := g.status.Load(); status != 0 {
			http.Error(w, "<html>nobody here, s3cret</html>", int(status))
			return
		}
		g.apiServer(w, r)
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := strings.Replace(kubeconfig, `"https://127.0.0.1:1"`, fmt.Sprintf(`%q, certificate-authority-data: %s`,
		server.URL, base64.StdEncoding.EncodeToString(authority)), 1)
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	g.credentials = fleet.Credentials{KubeconfigFile: path}
	return g
}

func (g *gateway) apiServer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	var answer any
	switch {
	case strings.HasSuffix(r.URL.Path, "/configmaps"):
		answer = &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"},
			Items: []corev1.ConfigMap{*clusterID(peer)}}
	case r.URL.Path == "/api/v1/namespaces":
		answer = &corev1.NamespaceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NamespaceList"},
			Items: []corev1.Namespace{*tenantNS(me)}}
	case strings.HasPrefix(r.URL.Path, "/api/v1/"):
		w.WriteHeader(http.StatusForbidden)
		answer = &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "forbidden"}
	default:
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// behind returns a consumer whose provider is behind the gateway.
func behind(t *testing.T, g *gateway, here ...client.Object) *clusters {
	t.Helper()
	c := newClusters(t, here, nil)
	c.open = func(ctx context.Context, _ fleet.Credentials) (client.Client, error) {
		c.opens++
		return c.openCredentials(ctx, g.credentials)
	}
	return c
}

// The gateway answers a request itself and does not forward it. The backend reports that the provider is unreachable.
func TestGatewayAnswersAreUnreachable(t *testing.T) {
	t.Parallel()
	for _, status := range []int32{http.StatusForbidden, http.StatusNotFound, http.StatusBadGateway,
		http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		g := newGateway(t)
		g.status.Store(status)
		c := behind(t, g)
		_, err := c.Identify(prompt(t), provider().Credentials)
		require.ErrorIs(t, err, backend.ErrUnreachable, "Identify on %d", status)
		require.NotContains(t, err.Error(), "s3cret", "its page is not for our logs")
		err = c.Establish(prompt(t), provider(), nil)
		require.ErrorIs(t, err, backend.ErrUnreachable, "Establish on %d", status)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	}
}

// A gateway answers 404. This does not show that our objects on the provider are gone.
func TestGateways404DoesNotCountAsGone(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	c := behind(t, g, peered()...)
	p := c.peering(provider())
	s := &survey{peering: p}
	require.NoError(t, p.locate(t.Context()))
	require.NoError(t, p.locateRemote(t.Context()))
	revoked, err := p.revoked(t.Context())
	require.NoError(t, err, "an API server without Liqo has no Tenant")
	require.True(t, revoked)

	g.status.Store(http.StatusNotFound)
	for name, gone := range map[string]func(context.Context) (bool, error){
		"Tenant revoked": p.revoked,
		"Tenant gone":    func(ctx context.Context) (bool, error) { gone, _, err := s.tenantGone(ctx); return gone, err },
		"leftovers gone": func(ctx context.Context) (bool, error) { gone, _, err := s.leftoversGone(ctx); return gone, err },
	} {
		p.remote.client = nil
		g.status.Store(0)
		require.NoError(t, p.locateRemote(t.Context()))
		g.status.Store(http.StatusNotFound)
		is, err := gone(t.Context())
		require.ErrorIs(t, err, backend.ErrUnreachable, name)
		require.False(t, is, name)
	}
}

// A request with Liqo's own kubeconfig gets a 404 page from a gateway. This does not show that the slice is gone.
func TestGateways404DoesNotCountSliceAsGone(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.status.Store(http.StatusNotFound)
	content, err := os.ReadFile(g.credentials.KubeconfigFile)
	require.NoError(t, err)
	secret := controlPlaneSecret()
	secret.Annotations = map[string]string{consts.RemoteTenantNamespaceAnnotKey: remoteNS}
	secret.Data = map[string][]byte{consts.KubeconfigSecretField: content}
	c := behind(t, g, tenantNS(peer), controlPlane(), secret, established(), accepted("2"))
	err = c.Return(seconds(t), someAttempt(1), nil)
	var stage *backend.StageError
	require.ErrorAs(t, err, &stage)
	require.Equal(t, backend.StageSliceGone, stage.Stage)

	g.status.Store(0)
	require.NoError(t, c.Return(prompt(t), someAttempt(1), nil), "an API server that knows no slices has none")
}

// A proxy in front of the consumer's API server answers 404 when it has lost that server. List then fails. If it
// returned an empty list, nodes would be drained.
func TestListFailsWhenTheConsumersProxyAnswers404(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/configmaps") { // the kind existed a moment ago
			list := &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"},
				Items: []corev1.ConfigMap{*clusterID(me)}}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(list)
			return
		}
		http.Error(w, "<html>no such cluster</html>", http.StatusNotFound)
	}))
	defer web.Close()
	b, err := New(Config{Consumer: &rest.Config{Host: web.URL}, ForceAfter: time.Millisecond})
	require.NoError(t, err)
	require.Error(t, b.Drain(soon(t), someAttempt(1), false, nil), "it is unknown whether the node is empty")
	require.Error(t, b.Return(soon(t), someAttempt(1), nil), "it is unknown whether the node is gone")
}
