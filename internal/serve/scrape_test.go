package serve

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
)

// stuck is a client that does not read the response until the test ends.
type stuck struct {
	*httptest.ResponseRecorder
	end <-chan struct{}
}

func (s stuck) Write(b []byte) (int, error) {
	<-s.end
	return len(b), nil
}

// TestScrapesAreEncodedOnceASecond makes many scrapes. Some clients do not read the response. The metrics are encoded
// only once a second, and no client waits for another client.
func TestScrapesAreEncodedOnceASecond(t *testing.T) {
	own := prometheus.NewRegistry()
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "answer"})
	own.MustRegister(gauge)
	gauge.Set(41)
	gathered := 0
	s := newScrapes(prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		gathered++
		return own.Gather()
	}), prometheus.NewRegistry(), quiet)
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept-Encoding", "gzip")
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		defer close(end)
		for range 10 {
			go s.ServeHTTP(stuck{httptest.NewRecorder(), end}, request)
		}
		synctest.Wait()
		var all sync.WaitGroup
		scrape := func() string {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, request)
			require.Equal(t, http.StatusOK, w.Code)
			require.Contains(t, w.Header().Get("Content-Type"), "text/plain; version=0.0.4")
			return w.Body.String()
		}
		for range 100 {
			all.Go(func() { require.Contains(t, scrape(), "answer 41\n") })
		}
		all.Wait()
		gauge.Set(42)
		require.Contains(t, scrape(), "answer 41\n")
		require.Equal(t, 1, gathered)
		<-time.After(scrapeEvery)
		require.Contains(t, scrape(), "answer 42\n")
		require.Equal(t, 2, gathered)
	})
}
