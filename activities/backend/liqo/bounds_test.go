package liqo

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// flood returns a client of a server that answers each request with a list of the given size in MiB. The server
// compresses its answer when the request allows compression.
func flood(t *testing.T, megabytes int) client.Client {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var out io.Writer = w
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
			packed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
			defer packed.Close()
			out = packed
		}
		fmt.Fprint(out, `{"apiVersion":"v1","kind":"ConfigMapList","items":[],"x":"`)
		chunk := []byte(strings.Repeat("a", 1<<20))
		for range megabytes {
			if _, err := out.Write(chunk); err != nil {
				return
			}
		}
		fmt.Fprint(out, `"}`)
	}))
	t.Cleanup(server.Close)
	provider, err := newProviderClient(&rest.Config{Host: server.URL, Timeout: time.Minute, // the race detector is slow
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	require.NoError(t, err)
	return provider
}

// A provider sends an answer that is too large. The backend reports this, and the worker uses only a bounded amount
// of memory for the answer.
func TestAnswersAreBounded(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := accessError("list", flood(t, 192).List(t.Context(), &corev1.ConfigMapList{}))
	runtime.ReadMemStats(&after)
	require.ErrorIs(t, err, backend.ErrInvalid)
	require.ErrorContains(t, err, "larger than 16 MiB")
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(150), "MiB allocated, the server's included")

	require.NoError(t, flood(t, 8).List(t.Context(), &corev1.ConfigMapList{}), "within the bound")
	c := newClusters(t, nil, nil)
	flooding := flood(t, 8)
	c.open = func(context.Context, fleet.Credentials) (client.Client, error) { return flooding, nil }
	_, err = c.Identify(prompt(t), provider().Credentials)
	require.ErrorIs(t, err, backend.ErrInvalid)
	require.ErrorContains(t, err, "larger than 4 MiB")
	err = c.Establish(prompt(t), provider(), nil)
	require.ErrorIs(t, err, backend.ErrInvalid)
	require.ErrorContains(t, err, "larger than 4 MiB")
}

// A provider's messages are cut to a bounded length before they become part of a heartbeat, an error or a history.
func TestProviderMessagesAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keypair, _ := keys(t)
		tenant := tenantOf(mine())
		tenant.UID = "t1"
		nonce := nonceOn(remoteNS, nonceName, "liqo.io/nonce", me, mine())
		nonce.Data = map[string][]byte{"nonce": []byte("n")}
		complaint := &corev1.Event{ObjectMeta: named(remoteNS, "e1"), InvolvedObject: corev1.ObjectReference{UID: "t1"},
			Type: "Warning", Reason: "SignatureVerificationFailed", Message: strings.Repeat("x", 1<<20),
			LastTimestamp: metav1.Now()}
		c := newClusters(t, []client.Object{keypair, tenantNS(peer, mine())},
			[]client.Object{tenantNS(me, mine()), tenant, nonce, complaint})
		sign(t, c, "n")
		told := 0
		err := c.Establish(soon(t), provider(), func(_ backend.Stage, message string) { told = max(told, len(message)) })
		require.ErrorContains(t, err, "SignatureVerificationFailed")
		require.Less(t, len(err.Error()), 3*maxWords)
		require.Less(t, told, 2*maxWords)

		shouts := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusConflict)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":%q}`,
				strings.Repeat("y", 1<<20))
		})
		server := httptest.NewServer(shouts)
		t.Cleanup(server.Close)
		loud, err := newProviderClient(&rest.Config{Host: server.URL})
		require.NoError(t, err)
		err = accessError("list", loud.List(t.Context(), &corev1.ConfigMapList{}))
		require.Error(t, err)
		require.Less(t, len(err.Error()), 2*maxWords)
	})
}

// The id that a provider reports becomes part of names, labels and metrics. Identify therefore refuses an id with
// characters that are not allowed there.
func TestIdentifyRefusesInvalidIDs(t *testing.T) {
	for _, id := range []string{"a b", "UPPER", "x,liqo.io/replication=true", strings.Repeat("x", 3<<20), "../../x",
		"line\nbreak", strings.Repeat("x", 64)} {
		c := newClusters(t, nil, nil)
		said := clusterID(id)
		require.NoError(t, c.there.Update(t.Context(), said))
		_, err := c.Identify(t.Context(), fleet.Credentials{KubeconfigFile: "x"})
		require.ErrorIs(t, err, backend.ErrInvalid)
		require.Less(t, len(err.Error()), 2*maxWords)
	}
}
