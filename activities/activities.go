// Package activities implements the Temporal activities: the steps of an instance's state machine, and the delivery of
// messages between workflows. Temporal may run an activity twice or interrupt it at any point. Each activity reports a
// failure as fleet.Failure (errors.go).
//
// If an activity learns something that other workflows need, this activity sends it to them. Select sends its view of
// the instance to the group, and the request for a hold to the provider. Join and Return send the final view (Ready
// or Released) to the group. Establish and RemovePeering send a report to the provider. Long work runs in short
// passes (passes.go), so a step occupies no slot of the worker while it waits for its next pass. Only Join occupies
// its slot for its whole budget.
package activities

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// These names identify the registered activities. Workflow histories contain them: never rename an activity.
const (
	NameDeliver       = "Deliver"
	NameInspect       = "Inspect"
	NameReport        = "Report"
	NameDiscover      = "Discover"
	NameSelect        = "Select"
	NameEstablish     = "Establish"
	NameJoin          = "Join"
	NameDrain         = "Drain"
	NameReturn        = "Return"
	NameRemovePeering = "RemovePeering"
)

// Catalog lists the offers from a short-lived cache (discovery.Recent), so a burst of scale-outs does not query the
// sources for each instance. It blocks while the sources are read, and returns a problem for each offer that it
// skips.
type Catalog interface {
	Offers(ctx context.Context) ([]fleet.Offer, []discovery.Problem, error)
}

// Messages sends messages to the entities: the NodeGroup and Provider workflows. Every method blocks until Temporal
// has stored the message, and is idempotent. Calls that run concurrently in one process may be combined into one
// message. View returns fleet.ErrNotRunning when the group does not run. Holds and Report start a provider that does
// not run.
type Messages interface {
	View(ctx context.Context, group string, v fleet.View) error
	Holds(ctx context.Context, provider string, requests ...fleet.HoldRequest) error
	Report(ctx context.Context, provider string, r fleet.PeeringReport) error
}

// Entities reads the state that the entities publish. These reads need no worker.
type Entities interface {
	// Remembered returns the provider's state from the last read, and the age of that read. For a provider that was
	// never read it returns the zero state and an age of more than a year. It does not call Temporal.
	Remembered(provider string) (s fleet.ProviderSnapshot, age time.Duration)
	// Provider returns a provider's state, at most half a second old. Status reads the state now. Both return
	// fleet.ErrNotRunning when the provider does not run.
	Provider(ctx context.Context, id string) (fleet.ProviderSnapshot, error)
	Status(ctx context.Context, provider string) (fleet.ProviderSnapshot, error)
	// Before returns the last state that the provider's previous workflow published before it was closed. It returns
	// zero when Temporal no longer lists a closed workflow of the provider.
	Before(ctx context.Context, provider string) (fleet.ProviderSnapshot, error)
	// Group reads a node group's state now. It returns fleet.ErrNotRunning when the group does not run.
	Group(ctx context.Context, name string) (fleet.Snapshot, error)
}

// Records reads the data that the observer has saved about entities, outside of Temporal, and saves positions next to
// this data. The other methods return false, or zero, when nothing was saved.
type Records interface {
	Group(ctx context.Context, name string) (r fleet.GroupRecord, known bool, err error)
	// Bill returns the costs of a group.
	Bill(ctx context.Context, group string) (bill money.Bill, known bool, err error)
	Cordoned(ctx context.Context, provider string) (bool, error)
	// Save saves a group's position, which Group then returns. It never replaces a newer position.
	Save(ctx context.Context, group string, at fleet.Position) error
}

// Workflows starts, signals, describes and ends single workflows.
type Workflows interface {
	// Start starts a workflow. It returns already=true and starts nothing when a workflow of that id runs, or has
	// completed and must not run again.
	Start(ctx context.Context, s Start) (already bool, err error)
	// Signal fails with fleet.ErrNotRunning when the workflow is closed.
	Signal(ctx context.Context, s Signal) error
	// Status describes a workflow. A workflow that Temporal does not know counts as closed.
	Status(ctx context.Context, id string) (Status, error)
	// Cancel requests the cancellation of a workflow, Terminate ends it. Both succeed when the workflow does not run.
	Cancel(ctx context.Context, id string) error
	Terminate(ctx context.Context, id, reason string) error
}

// Status describes the state of a workflow.
type Status struct {
	Running   bool
	Completed bool
	// Failing reports that the workflow task has failed at least five times and has been failing for ten minutes.
	Failing bool
	// Orphaned reports that no worker can continue the running workflow: it is pinned to a version that has had no
	// worker for about five minutes.
	Orphaned bool
}

// Activities implements the activities. The fields are the dependencies of the activities.
type Activities struct {
	Catalog  Catalog
	Backend  backend.Backend
	Messages Messages
	Entities Entities
	// Records may be nil, which means that no record was saved.
	Records   Records
	Workflows Workflows
	// Making is the limit on the calls of Join and Establish that run concurrently for one provider in this worker.
	// Removing is the same limit for removals. nil means no limit.
	Making, Removing *Limiter
	// Starting is the limit on the calls that start workflows concurrently in this worker. Starts of peering
	// workflows do not count. nil means no limit.
	Starting *semaphore.Weighted
	// FanOut is the number of commands of one batch that are executed concurrently. 0 means 4.
	FanOut int
	// Probe sends a request to a host that is outside this cluster and belongs to no provider. It returns nil when
	// the host answers. A nil Probe means that no such host is configured.
	Probe func(ctx context.Context) error
	// Events records what steps do as Kubernetes Events; nil records nothing.
	Events EventRecorder
	// Now returns the time of the worker's clock; nil means time.Now.
	Now func() time.Time

	own    ownFaults
	chosen chosen
}

func (a *Activities) fanOut() int {
	if a.FanOut <= 0 {
		return defaultFanOut
	}
	return a.FanOut
}

func (a *Activities) now() time.Time {
	if a.Now == nil {
		return time.Now()
	}
	return a.Now()
}
