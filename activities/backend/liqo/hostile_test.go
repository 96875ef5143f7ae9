package liqo

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
)

// answering returns the address of a server that always gives the same answer.
func answering(t *testing.T, header map[string]string, status int, body string) *rest.Config {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for key, value := range header {
			w.Header().Set(key, value)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

var inJSON = map[string]string{"Content-Type": "application/json"}

// An answer is small on the wire, but would be large in memory. The backend does not read it to its end.
func TestAnswersLargeInMemoryAreCut(t *testing.T) {
	list := `{"apiVersion":"v1","kind":"ConfigMapList","items":[`
	anchors := "apiVersion: v1\nkind: ConfigMapList\nitems:\n- &a\n  data: {a: b}\n" + strings.Repeat("- *a\n", 50000)
	for name, c := range map[string]struct {
		kind, body, says string
	}{
		"elements": {"application/json", list + strings.Repeat("{},", 4<<20/3-40) + "{}]}", "too many lists"},
		"fields":   {"application/json", list + `{"data":{` + fields(300_000) + `}}]}`, "too many lists"},
		"yaml":     {"application/yaml", anchors, ""},
		"protobuf": {"application/vnd.kubernetes.protobuf", "k8s\x00" + strings.Repeat("\x12\x00", 2<<20), ""},
	} {
		provider, err := newProviderClient(answering(t, map[string]string{"Content-Type": c.kind}, http.StatusOK, c.body))
		require.NoError(t, err)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err = accessError("list", provider.List(withIdentityBound(t.Context()), &corev1.ConfigMapList{}))
		runtime.ReadMemStats(&after)
		require.ErrorContains(t, err, c.says, name)
		require.Less(t, len(err.Error()), 2*maxWords, name)
		require.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(60), "%s: MiB, with the server's", name)
	}
	config := answering(t, inJSON, http.StatusOK, list+strings.Repeat("{},", 10000)+"{}]}")
	provider, err := newProviderClient(config)
	require.NoError(t, err)
	require.NoError(t, provider.List(t.Context(), &corev1.ConfigMapList{}), "within the bound")
}

func fields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%x":"",`, i)
	}
	return b.String() + `"z":""`
}

// The backend requests lists of metadata in JSON, like all other lists, although client-go prefers protobuf for
// metadata.
func TestMetadataIsRequestedInJSON(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "protobuf") {
			w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","items":[{"metadata":{"name":"a"}}]}`)
	}))
	t.Cleanup(server.Close)
	provider, err := newProviderClient(&rest.Config{Host: server.URL,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	require.NoError(t, err)
	var found metav1.PartialObjectMetadataList
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	require.NoError(t, provider.List(t.Context(), &found))
	require.Len(t, found.Items, 1)
}

// A provider cannot redirect our reads or writes to another server.
func TestRedirectsAreNotFollowed(t *testing.T) {
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
		provider, err := newProviderClient(answering(t, map[string]string{"Location": elsewhere.URL + "/latest/meta-data"},
			status, ""))
		require.NoError(t, err)
		err = accessError("list", provider.List(t.Context(), &corev1.ConfigMapList{}))
		require.ErrorIs(t, err, backend.ErrUnreachable)
		err = accessError("make", provider.Create(t.Context(), &corev1.Secret{ObjectMeta: named("a", "b")}))
		require.ErrorIs(t, err, backend.ErrUnreachable)
	}
	require.Zero(t, asked)
}

// A provider can write any amount into a slice's grant. An amount with a huge exponent must not take long to decode or
// to compare.
func TestGrantsWithHugeExponentsAreFast(t *testing.T) {
	body := `{"apiVersion":"authentication.liqo.io/v1beta1","kind":"ResourceSlice","metadata":{"name":"a","namespace":"b"},
		"status":{"resources":{"cpu":"1e100000000","memory":"1.0000000000000000000000001E100000000"}}}`
	began := time.Now()
	consumer, err := newConsumerClient(answering(t, inJSON, http.StatusOK, body))
	require.NoError(t, err)
	provider, err := newProviderClient(answering(t, inJSON, http.StatusOK, body))
	require.NoError(t, err)
	for _, cluster := range []client.Client{consumer, provider} {
		var slice authv1beta1.ResourceSlice
		require.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: "b", Name: "a"}, &slice))
		nodes.Missing(spec().Shape, slice.Status.Resources)
	}
	require.Less(t, time.Since(began), 10*time.Second)
}

// The name of our Tenant, which a provider can choose, becomes part of histories. The backend therefore shortens a
// reason that contains this name.
func TestReasonsWithLongNamesAreCut(t *testing.T) {
	tenant := tenantOf(mine())
	tenant.Name = strings.Repeat("x", 1<<20)
	tenant.Spec.TenantCondition = authv1beta1.TenantConditionDrained
	c := newClusters(t, []client.Object{tenantNS(peer, mine()), controlPlane(mine())},
		[]client.Object{tenantNS(me, mine()), tenant})
	found, err := c.Refusal(t.Context(), provider())
	require.NoError(t, err)
	require.Less(t, len(found.Reason), 2*maxWords)
	var refusing *backend.RefusingError
	require.ErrorAs(t, c.RemovePeering(prompt(t), provider(), nil), &refusing)
	require.Less(t, len(refusing.Reason), 2*maxWords)
}

// A provider can invent any number of slices. Leftovers looks up only a bounded number of slices on the consumer.
func TestLeftoversOfInventedSlicesAreBounded(t *testing.T) {
	there := []client.Object{tenantNS(me, signed())}
	for n := range 3 * maxLeft {
		slice := leftSlice(signed(), map[string]string{backend.LabelAttempt: strconv.Itoa(n)})
		slice.Name = fmt.Sprintf("lca-g-abc-1-%d", n)
		there = append(there, slice)
	}
	c := newClusters(t, peered(accepted("2")), there)
	asked := 0
	c.local = interceptor.NewClient(c.watch, interceptor.Funcs{Get: func(ctx context.Context, cluster client.WithWatch,
		key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
		if _, slice := object.(*authv1beta1.ResourceSlice); slice {
			require.NotEqual(t, "lca-g-abc-1-1", key.Name, "it was listed")
			asked++
		}
		return cluster.Get(ctx, key, object, opts...)
	}})
	left, err := c.Leftovers(prompt(t), known())
	require.NoError(t, err)
	require.Len(t, left, maxLeft)
	require.Equal(t, maxLeft, asked)
}
