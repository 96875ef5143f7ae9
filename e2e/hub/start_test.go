package hub

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/temporal"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

var start = flag.Int("start", 0, "the number of node groups of TestStart; 0 measures nothing")

// TestStart measures the first start of a hub with many node groups, on the official Temporal server with SQLite and
// with PostgreSQL. In the second run on each store, sixteen clients send list and count requests whose deadlines pass.
// TestStart prints the same BENCH lines as TestHub. The ratio compares the time with the first run on the same store.
func TestStart(t *testing.T) {
	if *start == 0 {
		t.Skip("make bench SUITE=start runs it")
	}
	program := proc.Build(t, proc.Root())
	c := cell{groups: *start, offers: 20, room: 2}
	for _, store := range []string{"sqlite", "postgres"} {
		var alone time.Duration
		for _, lists := range []bool{false, true} {
			name := store + map[bool]string{true: "-expired-lists"}[lists]
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				var env []string
				var flags connect.Flags
				if store == "sqlite" {
					flags.Address = temporal.NewSmall(t, dir).Address
					env = []string{"TEMPORAL_NAMESPACE=" + temporal.Namespace}
				} else {
					s := temporal.New(t, dir)
					env = s.Environment(map[string]string{"TEMPORAL_ADDRESS": ""})
					flags = connect.Flags{Address: s.Address, CA: s.CAFile, Cert: s.Cert, Key: s.Key}
				}
				flags.Namespace = temporal.Namespace
				var expired atomic.Int64
				if lists {
					expireLists(t, &flags, &expired)
				}
				began := time.Now()
				s := connected(t, dir, program, c, flags.Address, env)
				testkit.Until(t, 5*time.Minute, "all node groups are served", func() error { return s.served(c.groups) })
				took := time.Since(began)
				if !lists {
					alone = took
				}
				fmt.Printf("BENCH start-%d-%s %.1f s %.2f start-%d-%s\n", *start, name, took.Seconds(),
					took.Seconds()/max(alone, time.Millisecond).Seconds(), *start, store)
				s.grow(c.groups-1, 1)
				s.until(time.Minute, c.groups-1, 1)
				require.Equal(t, lists, expired.Load() > 0)
				t.Log("expired requests:", expired.Load())
			})
		}
	}
}

// callers is the number of clients whose requests expire.
const callers = 16

// expireLists sends list and count requests with deadlines of 1 to 20 ms until the test ends. It counts the requests
// whose deadlines passed. Such requests have permanently blocked the CLI's dev server.
func expireLists(t *testing.T, flags *connect.Flags, expired *atomic.Int64) {
	t.Helper()
	target, err := flags.Open(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	options := target.Options()
	options.Logger = slog.New(slog.DiscardHandler)
	c, err := client.NewLazyClient(options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	var group errgroup.Group
	t.Cleanup(func() { _ = group.Wait() })
	for caller := range callers {
		group.Go(func() error {
			for n := caller; t.Context().Err() == nil; n++ {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+n%20)*time.Millisecond)
				var err error
				if n%2 == 0 {
					_, err = c.WorkflowService().ListWorkflowExecutions(ctx,
						&workflowservice.ListWorkflowExecutionsRequest{Namespace: temporal.Namespace, PageSize: 1000})
				} else {
					_, err = c.WorkflowService().CountWorkflowExecutions(ctx,
						&workflowservice.CountWorkflowExecutionsRequest{Namespace: temporal.Namespace})
				}
				if err != nil && ctx.Err() != nil {
					expired.Add(1)
				}
				<-ctx.Done()
				cancel()
			}
			return nil
		})
	}
}
