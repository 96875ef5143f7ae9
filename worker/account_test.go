package worker_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// The costs of a group stay known when the group's history, the whole group, or the hub's history is lost.
func TestCostsSurviveLostGroupsAndHistories(t *testing.T) {
	t.Parallel()
	s := newHubScene(t, 1, func(g *fleet.GroupSpec) { g.Spending = &money.Spending{Account: "team"} })
	s.work(func(o *worker.Options) { o.Observer.Every = 2 * time.Second })
	hub := flow.NewHub(s.temporal, s.hub, s.queue)
	name := s.grow(1).Instances[0].Name
	first := s.allIn(fleet.Ready, 1)
	records := &observer.Records{Memory: s.observer.Memory, Costs: s.observer.Costs}
	testkit.Until(t, waitLimit, "the observer has saved what the node cost", func() error {
		b, _, err := records.Bill(s.ctx, s.spec.ID)
		if err == nil && b.Cost.ThisMonth() == 0 {
			err = errors.New("nothing yet")
		}
		return err
	})

	require.NoError(t, s.temporal.TerminateWorkflow(s.ctx, s.hub.ID(workflows.NodeGroupID(s.spec.ID)), "",
		"its history is lost"))
	s.configure()
	again := s.until("it is rebuilt", func(snap fleet.Snapshot) bool {
		return snap.Epoch != first.Epoch && !snap.Recovering && snap.Target == 1
	})
	require.True(t, first.Cost.Since.Equal(again.Cost.Since), "it continues its bill")
	require.Positive(t, again.Cost.ThisMonth())

	s.release(name)
	spent := s.allIn("", 0).Cost.ThisMonth()
	require.NoError(t, s.groups.Close(s.ctx, s.spec.ID))
	has := func() error {
		book, err := hub.Bills(s.ctx)
		if err != nil {
			return err
		}
		if len(book) != 1 || book[0].Account != "team" || book[0].Cost.ThisMonth() < spent {
			return fmt.Errorf("%+v", book)
		}
		return nil
	}
	testkit.Until(t, waitLimit, "the hub has the group's bill", has)
	ended, err := hub.Ended(s.ctx)
	require.NoError(t, err)
	require.Len(t, ended.Rows, 1)
	require.Equal(t, s.spec.ID, ended.Rows[0].Group)
	require.GreaterOrEqual(t, ended.Rows[0].Amount, spent)
	testkit.Until(t, waitLimit, "the observer has taken it over", func() error {
		b, known, err := records.Bill(s.ctx, s.spec.ID)
		if err == nil && !(known && b.Ended) {
			err = errors.New("the group still runs, for all that it knows")
		}
		return err
	})

	require.NoError(t, s.temporal.TerminateWorkflow(s.ctx, s.hub.ID(workflows.HubID), "", "its history is lost"))
	testkit.Until(t, waitLimit, "the observer gives the bill to the new hub", has)
}
