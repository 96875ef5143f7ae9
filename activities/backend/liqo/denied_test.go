package liqo

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// Liqo waits up to 30 s for its signer and reports a denial in the meantime. Such an early denial is not final. Join
// therefore ignores it during these 30 s.
func TestJoinIgnoresAnEarlyDenial(t *testing.T) {
	t.Parallel()
	const signer = 30 * time.Second
	for lasts, denied := range map[time.Duration]bool{signer + time.Second: false, signer + 10*time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			slice := accepted("2")
			slice.Status.Conditions[0].Status = authv1beta1.ResourceSliceConditionDenied
			c := newClusters(t, peered(slice), nil)
			c.config.DenyAfter = Config{}.withDefaults().DenyAfter
			ctx, cancel := context.WithTimeout(t.Context(), lasts)
			defer cancel()
			_, err := c.Join(ctx, spec(), nil)
			require.Equal(t, denied, errors.Is(err, backend.ErrDenied), "%v", err)
			require.Equal(t, !denied, errors.Is(err, context.DeadlineExceeded), "%v", err)
		})
	}
}
