package faults

import (
	"context"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/temporal/dev"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/devserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// limits are the parts in which Temporal limits requests or workflows. A real server has higher limits.
var limits = []part{
	{"list requests limited", listsLimited}, {"requests limited", requestsLimited},
	{"pending activities limited", activitiesLimited},
}

// limitTemporal starts Temporal again with settings of its dynamic config.
func (s *stack) limitTemporal(settings ...string) {
	s.t.Helper()
	s.temporal.Kill()
	var args []string
	for _, setting := range settings {
		args = append(args, "--dynamic-config-value", setting)
	}
	s.temporal = dev.Start(s.t, s.address, s.database(), s.dir, args...)
}

// run runs a command of liqo-autoscaler and returns its output.
func (s *stack) run(args ...string) string {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), s.binary, append(args, "--temporal-address", s.address)...)
	out, err := command.CombinedOutput()
	require.NoError(s.t, err, "%v: %s", args, out)
	return string(out)
}

// dial connects to Temporal.
func (s *stack) dial() client.Client {
	s.t.Helper()
	c, err := client.Dial(client.Options{HostPort: s.address, Logger: devserver.Quiet()})
	require.NoError(s.t, err)
	s.t.Cleanup(c.Close)
	return c
}

// listsLimited allows one list request a second, and a stranger uses it. An operator cordons a provider, and all
// workflows of providers and groups are terminated. The cordon stays, the nodes stay, and a dead provider is found.
func listsLimited(s *stack) {
	s.limitTemporal("frontend.namespaceRPS.visibility=1", "frontend.namespaceBurstRatio.visibility=1",
		"frontend.globalNamespaceRPS.visibility=1")
	refused := s.listForever()
	kept := s.spread()
	s.run("cordon", "provider", "genoa")
	s.during(75*time.Second, kept) // until a round has saved the cordon
	c := s.dial()
	for _, id := range []string{
		workflows.ProviderID("milan"), workflows.ProviderID("genoa"), workflows.NodeGroupID("std"),
	} {
		require.NoError(s.t, c.TerminateWorkflow(s.t.Context(), id, "", "test"))
	}
	s.rest(12, kept)
	require.NoError(s.t, s.ca.Grow(1))
	s.during(30*time.Second, kept)
	require.Equal(s.t, kept, s.on("genoa"), "genoa is cordoned")
	s.run("uncordon", "provider", "genoa")
	s.rest(13, kept)
	s.dies("milan", 13)
	s.holds(kept)
	require.Positive(s.t, refused(), "Temporal refused no list request")
	s.healed("milan", kept, 13)
}

// listForever lists workflows until the test ends. The result returns the number of requests that Temporal has refused.
// It does not use Temporal's SDK, which sends refused requests again.
func (s *stack) listForever() (refused func() int64) {
	connection, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = connection.Close() })
	c := workflowservice.NewWorkflowServiceClient(connection)
	var n atomic.Int64
	go func() {
		for s.t.Context().Err() == nil {
			ctx, cancel := context.WithTimeout(s.t.Context(), 200*time.Millisecond)
			_, err := c.ListWorkflowExecutions(ctx,
				&workflowservice.ListWorkflowExecutionsRequest{Namespace: "default", PageSize: 1})
			if status.Code(err) == codes.ResourceExhausted {
				n.Add(1)
			}
			<-ctx.Done()
			cancel()
		}
	}()
	return n.Load
}

// requestsLimited allows twenty requests a second in the namespace. CA reads the group only every few seconds, because
// each of its reads is a request.
func requestsLimited(s *stack) {
	s.pace = 3 * time.Second
	s.limitTemporal("frontend.namespaceRPS=20", "frontend.namespaceBurstRatio=1.0", "frontend.globalNamespaceRPS=20")
	kept := s.spread()
	s.dies("milan", 12)
	s.healed("milan", kept, 12)
}

// activitiesLimited allows three pending activities for each workflow.
func activitiesLimited(s *stack) {
	s.limitTemporal("limit.numPendingActivities.error=3")
	kept := s.spread()
	s.dies("milan", 12)
	s.healed("milan", kept, 12)
}
