package worker_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/searchattr"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// listed waits until a query finds exactly these workflows. A workflow appears in Temporal's list a little after its
// start.
func (s *scene) listed(query string, ids ...string) {
	s.t.Helper()
	slices.Sort(ids)
	var last seen[[]string]
	require.Eventuallyf(s.t, func() bool {
		page, err := s.temporal.ListWorkflow(s.ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		if err != nil {
			last.is([]string{err.Error()})
			return false
		}
		var found []string
		for _, e := range page.GetExecutions() {
			found = append(found, e.GetExecution().GetWorkflowId())
		}
		slices.Sort(found)
		return slices.Equal(ids, last.is(found))
	}, waitLimit, waitTick, "%s; last: %s", query, &last)
}

// Operators can find workflows by group, instance and provider.
func TestWorkflowsAreFoundByGroupInstanceAndProvider(t *testing.T) {
	t.Parallel()
	s := newScene(t, 2).work()
	group, bad, good := s.spec.ID, s.providers[0], s.providers[1]
	s.knobs(0, sim.Knobs{Hang: backend.StageTenant})
	name := s.grow(1).Instances[0].Name
	out := workflows.ScaleOutID(name)
	s.listed(fmt.Sprintf("LiqoGroup='%s' AND LiqoInstance='%s'", group, name), out)
	s.listed(fmt.Sprintf("LiqoProvider='%s'", bad), workflows.PeeringID(bad))

	require.NoError(t, s.temporal.CancelWorkflow(s.ctx, workflows.PeeringID(bad), ""))
	s.allIn(fleet.Ready, 1)
	s.listed(fmt.Sprintf("LiqoProvider='%s'", good), workflows.PeeringID(good))

	s.knobs(0, sim.Knobs{})
	s.release(name)
	s.empty()
	s.listed(fmt.Sprintf("LiqoInstance='%s'", name), out, workflows.ScaleInID(name))
	s.listed(fmt.Sprintf("LiqoProvider='%s'", good), workflows.PeeringID(good), workflows.UnpeeringID(good),
		workflows.ScaleInID(name))
}

var namespaces atomic.Int64

// elsewhere moves the scene to its own namespace, without search attributes.
func (s *scene) elsewhere() (namespace string) {
	s.t.Helper()
	namespace = fmt.Sprintf("bare-%d", namespaces.Add(1))
	_, err := s.temporal.WorkflowService().RegisterNamespace(s.ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(s.t, err)
	s.temporal, err = client.Dial(client.Options{HostPort: devServer, Namespace: namespace, Logger: quiet()})
	require.NoError(s.t, err)
	s.t.Cleanup(s.temporal.Close)
	s.groups = flow.NewGroups(s.temporal, "", s.queue)
	require.Eventually(s.t, func() bool { // Temporal's caches receive the change a little later
		_, err := s.temporal.CountWorkflow(s.ctx, &workflowservice.CountWorkflowExecutionsRequest{})
		return err == nil
	}, waitLimit, 100*time.Millisecond)
	return namespace
}

func (s *scene) register(namespace string) {
	s.t.Helper()
	all := map[string]enums.IndexedValueType{}
	for _, name := range workflows.SearchAttributes {
		all[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
	}
	_, err := s.temporal.OperatorService().AddSearchAttributes(s.ctx,
		&operatorservice.AddSearchAttributesRequest{Namespace: namespace, SearchAttributes: all})
	require.NoError(s.t, err)
}

func (s *scene) unregister(namespace string) {
	s.t.Helper()
	_, err := s.temporal.OperatorService().RemoveSearchAttributes(s.ctx, &operatorservice.RemoveSearchAttributesRequest{
		Namespace: namespace, SearchAttributes: workflows.SearchAttributes,
	})
	require.NoError(s.t, err)
}

// known waits until Temporal accepts queries by our attributes. If the parameter want is false, it waits until
// Temporal refuses such queries.
func (s *scene) known(want bool) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		_, err := s.temporal.CountWorkflow(s.ctx,
			&workflowservice.CountWorkflowExecutionsRequest{Query: "LiqoGroup='x' AND LiqoInstance='x' AND LiqoProvider='x'"})
		return (err == nil) == want
	}, waitLimit, 100*time.Millisecond)
}

// A worker that does not set the attributes needs no search attribute in the namespace.
func TestWorkerWithoutSearchAttributesWorks(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1)
	namespace := s.elsewhere()
	o := s.options()
	o.Namespace, o.SearchAttributes = namespace, false
	s.start(o)
	s.configure()
	t.Cleanup(s.replay)
	s.grow(1)
	s.release(s.allIn(fleet.Ready, 1).Instances[0].Name)
	s.allIn("", 0)
	s.empty()
}

// A worker that sets the attributes waits until they are registered, and reports the missing ones. When an
// administrator removes the attributes later, the group repeats each start until the attributes exist again, so no
// start is lost.
func TestWorkerWaitsForSearchAttributes(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1)
	namespace := s.elsewhere()
	o := s.options()
	waits, polls := make(chan error, 1), make(chan struct{})
	o.Namespace = namespace
	o.Waiting = func(why error) {
		select {
		case waits <- why:
		default:
		}
	}
	o.Started = func() { close(polls) }
	s.start(o)
	err := <-waits
	require.ErrorIs(t, err, searchattr.ErrNotRegistered)
	require.ErrorContains(t, err, "--name LiqoGroup --type Keyword --name LiqoInstance --type Keyword --name LiqoProvider")
	select {
	case <-polls:
		require.Fail(t, "the worker polls without search attributes")
	default:
	}
	s.register(namespace)
	<-polls
	s.known(true)
	s.configure()
	t.Cleanup(s.replay)
	ready := func(name string) {
		s.allIn(fleet.Ready, 1)
		s.release(name)
		s.allIn("", 0)
	}
	name := s.grow(1).Instances[0].Name
	ready(name)
	s.listed(fmt.Sprintf("LiqoInstance='%s'", name), workflows.ScaleOutID(name), workflows.ScaleInID(name))

	s.unregister(namespace)
	s.known(false)
	name = s.grow(1).Instances[0].Name
	s.refused("LiqoGroup")
	s.register(namespace)
	ready(name)
	s.empty()
}

// options returns the options of a worker of this scene.
func (s *scene) options() worker.Options {
	s.t.Helper()
	o, err := options(s.temporal, s.world, s.queue, filepath.Join(s.dir, "offers.yaml"))
	require.NoError(s.t, err)
	return o
}

// refused waits until a start of the group has failed with an error that names the attribute.
func (s *scene) refused(attribute string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		events := s.temporal.GetWorkflowHistory(s.ctx, workflows.NodeGroupID(s.spec.ID), "", false,
			enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			if err != nil {
				return false
			}
			for _, p := range e.GetActivityTaskCompletedEventAttributes().GetResult().GetPayloads() {
				if bytes.Contains(p.GetData(), []byte(attribute)) {
					return true
				}
			}
		}
		return false
	}, waitLimit, waitTick)
}
