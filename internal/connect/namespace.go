package connect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"
)

// MinRetention is the minimum retention of a namespace. Temporal keeps a closed workflow for the time of the
// retention. During this time it can refuse to start another workflow with the same id.
const MinRetention = 24 * time.Hour

// EnsureNamespace creates the target's namespace with the given retention if the namespace does not exist. It is
// idempotent. It returns the retention of the namespace, and reports whether it has created the namespace. Explain
// converts its errors.
func (t *Target) EnsureNamespace(ctx context.Context, c client.Client,
	retention time.Duration) (kept time.Duration, created bool, err error) {
	service := c.WorkflowService()
	got, err := service.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: t.Namespace})
	if err == nil {
		return got.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(), false, nil
	}
	var missing *serviceerror.NamespaceNotFound
	if !errors.As(err, &missing) {
		return 0, false, t.Explain(ctx, err)
	}
	_, err = service.RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: t.Namespace, WorkflowExecutionRetentionPeriod: durationpb.New(retention),
		Description: "liqo-autoscaler",
	})
	var exists *serviceerror.NamespaceAlreadyExists
	switch code := serviceerror.ToStatus(err).Code(); {
	case err == nil, errors.As(err, &exists): // exists means that another client has just created the namespace
		return retention, true, nil
	case code == codes.PermissionDenied, code == codes.Unimplemented:
		return 0, false, fmt.Errorf("this account may not create namespace %s (%w): an administrator must create it, with "+
			"a retention of %s; then run this again", t.Namespace, err, retention)
	default:
		return 0, false, t.Explain(ctx, fmt.Errorf("create namespace %s: %w", t.Namespace, err))
	}
}
