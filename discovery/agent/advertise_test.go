package agent

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
)

// hanging is a sink whose writes hang for a while. It records the age of the oldest measurement that it receives
// afterwards.
type hanging struct {
	sink
	until    time.Time
	measured func() time.Time
	oldest   time.Duration
}

func (h *hanging) Put(ctx context.Context, offer api.Posted, ttl time.Duration) error {
	if time.Now().Before(h.until) {
		<-time.After(10 * time.Second)
		return context.DeadlineExceeded
	}
	h.oldest = max(h.oldest, time.Since(h.measured()))
	return h.sink.Put(ctx, offer, ttl)
}

// A sink hangs and then works again. It receives a new measurement, and not the measurement from before it hung.
func TestSinkReceivesANewMeasurementAfterAHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at time.Time
		to := &hanging{sink: sink{offers: map[string]api.Posted{}}, until: time.Now().Add(5 * time.Minute),
			measured: func() time.Time { return at }}
		a := &Advertiser{Sink: to, Changed: make(chan struct{}), Metrics: NewMetrics("test", prometheus.NewRegistry()),
			Log: quiet, Offers: func() (offers []api.Posted, ttl time.Duration) {
				at = time.Now()
				for n := range 100 {
					o := api.Posted{}
					o.Name = fmt.Sprint(n)
					offers = append(offers, o)
				}
				return offers, time.Minute
			}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			a.Run(ctx)
		}()
		<-time.After(time.Minute)
		require.Error(t, a.Err(), "it is known soon")
		<-time.After(10 * time.Minute)
		require.NoError(t, a.Err())
		require.Len(t, to.offers, 100)
		require.LessOrEqual(t, to.oldest, 40*time.Second)
		cancel()
		<-ended
	})
}
