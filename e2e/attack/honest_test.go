package attack

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// answers returns a check that a URL answers with status 200.
func answers(url string) func(context.Context) error {
	return func(ctx context.Context) error { return get(ctx, http.DefaultClient, url, "") }
}

// get reads the whole answer, which must have status 200.
func get(ctx context.Context, web *http.Client, url, token string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := web.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.300s", url, answer.Status, said)
	}
	return err
}

// honest is a request of an honest client.
type honest struct {
	name     string
	ask      func(context.Context) error
	patience time.Duration // the time for which the client waits for an answer
}

// These are the timeout, the pause between two requests, and the measured time of honest clients. CA gives up a call
// after five seconds.
const (
	patience = 5 * time.Second
	pause    = 50 * time.Millisecond
	measured = 4 * time.Second
)

// measure makes each honest client send requests for a while, one after another, and returns the durations. Each
// request must be answered.
func measure(t *testing.T, clients []honest, for_ time.Duration) (took map[string][]time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	var failed []error
	took = map[string][]time.Duration{}
	for _, client := range clients {
		all.Go(func() {
			next := time.NewTicker(pause)
			defer next.Stop()
			for end := time.Now().Add(for_); time.Now().Before(end); <-next.C {
				ctx, cancel := context.WithTimeout(t.Context(), client.patience)
				began := time.Now()
				err := client.ask(ctx)
				waited := time.Since(began)
				cancel()
				mu.Lock()
				took[client.name] = append(took[client.name], waited)
				if err != nil {
					failed = append(failed, fmt.Errorf("%s, after %s: %w", client.name, waited.Round(time.Millisecond), err))
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.Empty(t, failed, "of %v requests", lengths(took))
	return took
}

func lengths(of map[string][]time.Duration) map[string]int {
	out := map[string]int{}
	for name, all := range of {
		out[name] = len(all)
	}
	return out
}

func count(of map[string][]time.Duration) (n int) {
	for _, all := range of {
		n += len(all)
	}
	return n
}

func quantile(of []time.Duration, q float64) time.Duration {
	slices.Sort(of)
	return of[int(q*float64(len(of)-1))]
}

// attack is an attack that is repeated. One call of the function once runs the attack one time, and adds the number
// of its requests to the parameter requests.
type attack struct {
	name    string
	hands   int // goroutines that run the attack concurrently; 0 means one
	once    func(ctx context.Context, requests *atomic.Int64)
	between time.Duration // pause of each goroutine after one attack
}

// under measures the honest clients, first without and then during the attacks, and prints the figures. No request of
// an honest client may fail, and no program may end.
func under(t *testing.T, target *member, members []*member, clients []honest, attacks ...attack) {
	t.Helper()
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			idle := testkit.CPU(t, target.Pid())
			quiet := measure(t, clients, measured)
			idle = testkit.CPU(t, target.Pid()) - idle
			ctx, stop := context.WithCancel(t.Context())
			var sent atomic.Int64
			var all sync.WaitGroup
			for range max(1, a.hands) {
				all.Go(func() {
					for ctx.Err() == nil {
						a.once(ctx, &sent)
						select {
						case <-ctx.Done():
						case <-time.After(a.between):
						}
					}
				})
			}
			defer all.Wait()
			defer stop()
			testkit.Until(t, time.Minute, "the attack has begun", func() error {
				if sent.Load() == 0 {
					return fmt.Errorf("no request")
				}
				return nil
			})
			used, before := testkit.CPU(t, target.Pid()), sent.Load()
			attacked := measure(t, clients, 2*measured)
			used, before = testkit.CPU(t, target.Pid())-used, sent.Load()-before
			used -= idle * time.Duration(count(attacked)) / time.Duration(count(quiet)) // less the honest requests
			stop()
			all.Wait()
			fmt.Printf("BENCH attack-%s-%s %.6f cpu-s/request %d requests\n", target.name, a.name,
				max(0, used.Seconds())/float64(max(1, before)), before)
			for _, c := range clients {
				for _, q := range []float64{0.5, 0.99} {
					now, once := quantile(attacked[c.name], q), quantile(quiet[c.name], q)
					fmt.Printf("BENCH attack-%s-%s-%s-p%.0f %.1f ms %.1f without-attack\n", target.name, a.name, c.name, 100*q,
						1000*now.Seconds(), now.Seconds()/once.Seconds())
				}
			}
			for _, m := range members {
				m.lives(a.name)
			}
		})
	}
}
