package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// HubID is the id of the workflow that claims a hub for one cluster.
const HubID = "hub"

// TypeHub is the type of the workflow that claims a hub.
const TypeHub = "Hub"

// SignalPauseObserver is an operator's signal to the hub: true stops the observer, false lets it continue.
const SignalPauseObserver = "pause-observer"

// SignalBills is a signal to the hub with bills of ended groups ([]money.Bill). A group sends its own bill when it
// closes. If a group has ended without sending its bill, the observer sends the bill.
const SignalBills = "bills"

// QueryBills is the query for the bills of ended groups. Its result is a money.Book.
const QueryBills = "bills"

// These are the memo keys of the hub.
const (
	MemoHub   = "hub"   // HubState
	MemoEnded = "ended" // money.Ended: the sums of ended groups in this month
)

// HubState is the state that the workflow hub publishes.
type HubState struct {
	// Cluster is the UID of the consumer cluster to which the hub belongs.
	Cluster string `json:"cluster"`
	// ObserverPaused reports that an operator has stopped the observer, which then changes nothing.
	ObserverPaused bool `json:"observerPaused,omitempty"`
}

// HubInput starts or continues the workflow hub.
type HubInput struct {
	HubState
	// Bills contains an encoded money.Book, see fleet.Encode; nil means an empty book.
	Bills []byte `json:"bills,omitempty"`
}

// hubSignals is the number of signals after which the hub continues as new.
const hubSignals = 500

// mostBills bounds the size of the bills of ended groups, in bytes of JSON, because the bills are part of the
// workflow's input.
const mostBills = 700 << 10

// RunHub is the workflow hub. It claims the names of a hub for one cluster, and stores the bills of the hub's ended
// groups. A worker of another cluster finds the claim and exits. The workflow waits for signals and costs nothing while
// none arrive.
func RunHub(ctx workflow.Context, in HubInput) error {
	h := hub{HubState: in.HubState}
	if in.Bills != nil {
		if err := fleet.Decode(in.Bills, &h.book); err != nil {
			return err
		}
	}
	err := workflow.SetQueryHandlerWithOptions(ctx, QueryBills, func() (money.Book, error) { return h.book, nil },
		workflow.QueryHandlerOptions{Description: description(QueryBills)})
	if err != nil {
		return err
	}
	pause, bills := signalChannel(ctx, SignalPauseObserver), signalChannel(ctx, SignalBills)
	wait := workflow.NewSelector(ctx)
	wait.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {})
	wait.AddReceive(pause, func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, &h.ObserverPaused) })
	wait.AddReceive(bills, func(c workflow.ReceiveChannel, _ bool) {
		var rows []money.Bill
		c.Receive(ctx, &rows)
		h.addBills(rows, workflow.Now(ctx))
	})
	for n := 0; n < hubSignals && !workflow.GetInfo(ctx).GetContinueAsNewSuggested() || wait.HasPending(); n++ {
		if err := h.publish(ctx); err != nil {
			return err
		}
		wait.Select(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	next := HubInput{HubState: h.HubState}
	if next.Bills, err = fleet.Encode(h.book); err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(ctx, TypeHub, next)
}

type hub struct {
	HubState
	book money.Book
}

// addBills adds bills to the book, and limits the size of the book.
func (h *hub) addBills(bills []money.Bill, now time.Time) {
	for _, b := range bills {
		h.book.Add(b.Settled())
	}
	h.book.Bound(mostBills, now)
}

// publish writes the memo, and the details for the Temporal UI.
func (h *hub) publish(ctx workflow.Context) error {
	ended := money.Ended{Bills: len(h.book), Rows: h.book.Spent(workflow.Now(ctx))}
	if err := workflow.UpsertMemo(ctx, map[string]any{MemoHub: h.HubState, MemoEnded: ended}); err != nil {
		return err
	}
	details := "hub of cluster " + h.Cluster
	if h.ObserverPaused {
		details += "\n\n**the observer is paused**: it repairs nothing, and finds no dead provider\n"
	}
	workflow.SetCurrentDetails(ctx, details)
	return nil
}
