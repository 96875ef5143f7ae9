package deploy_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/leader"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve/parts"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
)

// leadsHub checks that the worker can lead a hub with its rights on a real API server. The worker can obtain the
// hub's Lease, store the observer's state, the bills and the positions of groups, and read the state with its age. The
// worker and the gRPC server can read the UID of the cluster.
func leadsHub(t *testing.T, c *cluster, account, server, hub string) {
	as := func(account string) kubernetes.Interface {
		config := rest.CopyConfig(c.config)
		config.Impersonate.UserName = "system:serviceaccount:" + namespace + ":" + account
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		return client
	}
	costs := observer.ConfigMap{Client: as(account), Name: observer.CostsName(hub)}
	require.NoError(t, costs.Save(t.Context(), []byte("sums")))
	require.NoError(t, costs.Save(t.Context(), []byte("later sums")))
	sums, err := costs.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, "later sums", string(sums))
	memory := observer.ConfigMap{Client: as(account), Name: observer.Name(hub)}
	document, age, err := memory.Load(t.Context())
	require.NoError(t, err)
	require.Empty(t, document)
	require.Negative(t, age)
	for _, text := range []string{"one", "two"} {
		require.NoError(t, memory.Save(t.Context(), []byte(text)))
		saved := time.Now()
		testkit.Until(t, time.Minute, "it is three seconds old, however often it is read", func() error {
			document, age, err := memory.Load(t.Context())
			if err == nil && string(document) != text || age < 0 || age > time.Since(saved)+2*time.Second {
				t.Fatalf("%q, %s old", document, age)
			}
			if err == nil && age < 3*time.Second {
				err = fmt.Errorf("%s old", age)
			}
			return err
		})
	}
	positions := observer.ConfigMap{Client: as(account), Name: observer.Name(hub), Key: observer.PositionsKey}
	edit := func(was []byte) []byte { return append(was, 'x') }
	require.NoError(t, positions.Change(t.Context(), edit))
	require.NoError(t, memory.Save(t.Context(), []byte("three")))
	require.NoError(t, positions.Change(t.Context(), edit))
	document, age, err = memory.Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, "three", string(document))
	require.GreaterOrEqual(t, age, time.Duration(0))
	document, err = positions.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, "xx", string(document), "the observer's save keeps the positions")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	led := false
	leader.Run(ctx, as(account), observer.Namespace, observer.Name(hub), slog.New(slog.DiscardHandler),
		func(context.Context) { led = true; stop() })
	require.True(t, led)
	for _, who := range []string{account, server} {
		uid, err := parts.ClusterUID(t.Context(), as(who))
		require.NoError(t, err)
		require.NotEmpty(t, uid)
	}
}
