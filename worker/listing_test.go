package worker_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
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
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/searchattr"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/workertest"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// searchAttributes are what the dev server's default namespace has.
func searchAttributes() temporal.SearchAttributes {
	var all []temporal.SearchAttributeUpdate
	for _, name := range workflows.SearchAttributes() {
		all = append(all, temporal.NewSearchAttributeKeyKeyword(name).ValueSet(""))
	}
	return temporal.NewSearchAttributes(all...)
}

// listed waits until a query finds exactly these workflows, which it does a little later than they run.
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

// Operators find workflows by group, instance, provider and phase.
func TestWorkflowsAreListedByWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	s := newScene(t, 2).work()
	group, bad, good := s.spec.ID, s.providers[0], s.providers[1]
	s.knobs(0, sim.Knobs{Hang: backend.StageTenant})
	name := s.grow(1).Instances[0].Name
	out, undo := workflows.ScaleOutID(name), workflows.UndoID(name, 1)
	s.listed(fmt.Sprintf("LiqoProvider='%s' AND LiqoPhase='Peering'", bad), out)
	s.listed(fmt.Sprintf("LiqoProvider='%s' AND LiqoPhase='Establishing'", bad), workflows.ProviderID(bad), workflows.PeeringID(bad))

	require.NoError(t, s.temporal.CancelWorkflow(s.ctx, workflows.PeeringID(bad), ""))
	s.allIn(fleet.Ready, 1)
	s.listed(fmt.Sprintf("LiqoGroup='%s' AND LiqoPhase='Ready'", group), out)
	s.listed(fmt.Sprintf("LiqoProvider='%s' AND LiqoInstance='%s'", good, name), out)
	s.listed(fmt.Sprintf("LiqoProvider='%s' AND LiqoInstance='%s' AND LiqoPhase='Released'", bad, name), undo)
	s.listed(fmt.Sprintf("LiqoProvider='%s' AND LiqoPhase='Established'", good), workflows.ProviderID(good))
	s.listed(fmt.Sprintf("LiqoGroup='%s' AND LiqoInstance IS NULL", group), workflows.NodeGroupID(group))

	s.knobs(0, sim.Knobs{})
	s.release(name)
	s.empty()
	s.listed(fmt.Sprintf("LiqoInstance='%s' AND LiqoPhase='Released'", name), workflows.ScaleInID(name), undo)
	s.listed(fmt.Sprintf("LiqoProvider='%s' AND LiqoPhase='Removing'", good), workflows.UnpeeringID(good))
	s.listed(fmt.Sprintf("LiqoProvider='%s' AND LiqoPhase='Absent'", good), workflows.ProviderID(good))
}

var namespaces atomic.Int64

// elsewhere puts the scene into a namespace of its own, without search attributes.
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
	require.Eventually(s.t, func() bool { // caches learn of it a little later
		_, err := s.temporal.CountWorkflow(s.ctx, &workflowservice.CountWorkflowExecutionsRequest{})
		return err == nil
	}, time.Minute, 100*time.Millisecond)
	return namespace
}

func (s *scene) register(namespace string) {
	s.t.Helper()
	all := map[string]enums.IndexedValueType{}
	for _, name := range workflows.SearchAttributes() {
		all[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
	}
	_, err := s.temporal.OperatorService().AddSearchAttributes(s.ctx, &operatorservice.AddSearchAttributesRequest{Namespace: namespace, SearchAttributes: all})
	require.NoError(s.t, err)
}

func (s *scene) unregister(namespace string) {
	s.t.Helper()
	_, err := s.temporal.OperatorService().RemoveSearchAttributes(s.ctx, &operatorservice.RemoveSearchAttributesRequest{
		Namespace: namespace, SearchAttributes: workflows.SearchAttributes(),
	})
	require.NoError(s.t, err)
}

// known waits until Temporal takes queries by our attributes, or takes them no longer.
func (s *scene) known(want bool) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		_, err := s.temporal.CountWorkflow(s.ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: "LiqoGroup='x' AND LiqoInstance='x' AND LiqoProvider='x' AND LiqoPhase='x'"})
		return (err == nil) == want
	}, time.Minute, 100*time.Millisecond)
}

// hangs waits until Temporal has refused what the workflow set.
func (s *scene) hangs(id string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		events := s.temporal.GetWorkflowHistory(s.ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			e, err := events.Next()
			if err != nil {
				return false
			}
			if e.GetWorkflowTaskFailedEventAttributes().GetCause() == enums.WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES {
				return true
			}
		}
		return false
	}, waitLimit, waitTick)
}

// Nobody has registered the attributes: a worker says how to, once, and everything works without them. One that is told to
// insist does not start.
func TestWithoutSearchAttributesEverythingWorks(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1)
	namespace := s.elsewhere()
	o, err := options(s.temporal, s.world, s.queue, filepath.Join(s.dir, "offers.yaml"))
	require.NoError(t, err)
	var log workertest.Buffer
	o.Namespace, o.Logger = namespace, slog.New(slog.NewTextHandler(&log, nil))

	insist := o
	insist.SearchAttributes = searchattr.On
	err = worker.Run(s.ctx, insist)
	require.ErrorIs(t, err, searchattr.ErrNotRegistered)
	command := "temporal operator search-attribute create --namespace " + namespace +
		" --name LiqoGroup --type Keyword --name LiqoInstance --type Keyword --name LiqoProvider --type Keyword --name LiqoPhase --type Keyword"
	require.ErrorContains(t, err, command)

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx, o) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	s.configure()
	t.Cleanup(s.replay)
	s.grow(1)
	s.release(s.allIn(fleet.Ready, 1).Instances[0].Name)
	s.allIn("", 0)
	s.empty()
	require.Equal(t, 1, bytes.Count([]byte(log.String()), []byte(command)), "%s", &log)
}

// Attributes are registered, and removed, while workflows run: they are shown when they can be, and nothing hangs for long
// when they cannot, continuing as new included.
func TestSearchAttributesComeAndGo(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, func(g *fleet.GroupSpec) { g.Max = 8 })
	namespace := s.elsewhere()
	_, err := s.temporal.ExecuteWorkflow(s.ctx, client.StartWorkflowOptions{
		ID: workflows.NodeGroupID(s.spec.ID), TaskQueue: s.queue, WorkflowTaskTimeout: 2 * time.Second,
	}, workflows.TypeNodeGroup, workflows.NodeGroupInput{Group: s.spec.ID, ContinueAt: 150})
	require.NoError(t, err)
	o, err := options(s.temporal, s.world, s.queue, filepath.Join(s.dir, "offers.yaml"))
	require.NoError(t, err)
	var registered atomic.Bool
	w := worker.New(o, registered.Load)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	s.configure()
	t.Cleanup(s.replay)
	life := func() string {
		name := s.grow(1).Instances[0].Name
		s.allIn(fleet.Ready, 1)
		s.release(name)
		s.allIn("", 0)
		return workflows.ScaleOutID(name)
	}
	life()

	s.register(namespace)
	s.known(true)
	registered.Store(true)
	s.configure()
	s.listed(fmt.Sprintf("LiqoGroup='%s'", s.spec.ID), workflows.NodeGroupID(s.spec.ID))
	out := life()
	s.listed(fmt.Sprintf("LiqoGroup='%s' AND LiqoPhase='Ready'", s.spec.ID), out)
	s.listed(fmt.Sprintf("LiqoProvider='%s' AND LiqoPhase='Absent'", s.providers[0]), workflows.ProviderID(s.providers[0]))

	s.unregister(namespace)
	s.known(false)
	name := s.grow(1).Instances[0].Name
	s.hangs(workflows.ScaleOutID(name))
	registered.Store(false)
	s.allIn(fleet.Ready, 1)
	s.release(name)
	s.allIn("", 0)
	life()
	life()
	s.empty()
}
