package parts

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/devserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/searchattr"
)

// TestBundledTemporalIsPrepared prepares the same Temporal twice. The second call changes nothing.
func TestBundledTemporalIsPrepared(t *testing.T) {
	c := devserver.Dial(t, devserver.New(t))
	f := BundledFlags{Enabled: true, Retention: 48 * time.Hour}
	target := &connect.Target{Namespace: "edge"}
	for range 2 {
		f.Prepare(t.Context(), c, target, slog.New(slog.DiscardHandler), func(error) {})
		kept, created, err := target.EnsureNamespace(t.Context(), c, 72*time.Hour)
		require.NoError(t, err)
		require.False(t, created)
		require.Equal(t, 48*time.Hour, kept)
		missing, err := searchattr.Missing(t.Context(), c, "edge")
		require.NoError(t, err)
		require.Empty(t, missing)
	}
	require.NoError(t, stores(c.WorkflowService(), "edge")(t.Context()))
	require.ErrorContains(t, BundledFlags{Enabled: true, Retention: time.Hour}.Check(), "use 24h or more")
}

// disk is a fake Temporal whose disk may be full. While it is full, Temporal refuses writes, but still accepts reads.
type disk struct {
	workflowservice.WorkflowServiceClient
	full   error
	data   map[string]string
	writes int
}

func (d *disk) UpdateNamespace(_ context.Context, r *workflowservice.UpdateNamespaceRequest,
	_ ...grpc.CallOption) (*workflowservice.UpdateNamespaceResponse, error) {
	if d.full != nil {
		return nil, d.full
	}
	d.writes++
	d.data = r.GetUpdateInfo().GetData()
	return &workflowservice.UpdateNamespaceResponse{}, nil
}

func (d *disk) DescribeNamespace(context.Context, *workflowservice.DescribeNamespaceRequest,
	...grpc.CallOption) (*workflowservice.DescribeNamespaceResponse, error) {
	return &workflowservice.DescribeNamespaceResponse{NamespaceInfo: &namespace.NamespaceInfo{Data: d.data}}, nil
}

// TestFullDiskIsNoticed checks that the check reports a full disk within storesEvery. When the disk has space again,
// the next check succeeds.
func TestFullDiskIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		check := stores(d, "default")
		for range 10 {
			require.NoError(t, check(t.Context()))
			<-time.After(time.Second)
		}
		require.Equal(t, 1, d.writes, "a look writes only when the last write is old")
		d.full = errors.New("database or disk is full")
		<-time.After(storesEvery)
		require.ErrorIs(t, check(t.Context()), d.full)
		d.full = nil
		require.NoError(t, check(t.Context()))
		require.Equal(t, 2, d.writes)
	})
}

// TestLostWriteIsNoticed checks that the check fails if Temporal accepts a write and then loses it.
func TestLostWriteIsNoticed(t *testing.T) {
	require.ErrorContains(t, stores(loses{&disk{}}, "default")(t.Context()), `read: "", where "`)
}

// loses accepts writes and drops them.
type loses struct{ *disk }

func (l loses) UpdateNamespace(context.Context, *workflowservice.UpdateNamespaceRequest,
	...grpc.CallOption) (*workflowservice.UpdateNamespaceResponse, error) {
	return &workflowservice.UpdateNamespaceResponse{}, nil
}
