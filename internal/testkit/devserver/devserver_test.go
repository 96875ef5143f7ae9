package devserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/operatorservice/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/devserver"
)

func TestServerHasTheAttributes(t *testing.T) {
	c := devserver.Dial(t, devserver.New(t, "Fleet"))
	got, err := c.OperatorService().ListSearchAttributes(t.Context(),
		&operatorservice.ListSearchAttributesRequest{Namespace: "default"})
	require.NoError(t, err)
	require.Contains(t, got.GetCustomAttributes(), "Fleet")
}
