// Package activities holds what workflows ask the outside world for: the steps of the machine, and the deliveries
// between workflows. Each may run twice or be cut anywhere, and speaks fleet.Failure when it fails (errors.go).
//
// The activity that learns a fact delivers it: Select tells the view and the acquire, Join and Return the last view,
// Establish and RemovePeering their report. What takes long runs in short passes (passes.go), so nothing waits in a
// slot for another workflow; only Join holds its slot for its budget.
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

// Names under which the activities are registered. They are in histories: never rename one.
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

// Catalog lists the offers, read a moment ago (discovery.Recent): a burst must not ask the sources for each instance.
// It blocks for the time that these need, and reports offers it had to skip as problems.
type Catalog interface {
	Offers(ctx context.Context) ([]fleet.Offer, []discovery.Problem, error)
}

// Messages delivers to entities. Every verb returns once the message is durable, and is idempotent; many callers of one
// process share a message. Errors: fleet.ErrNotRunning when nobody runs the group; a provider is started.
type Messages interface {
	View(ctx context.Context, group string, v fleet.View) error
	Holds(ctx context.Context, provider string, requests ...fleet.HoldRequest) error
	Report(ctx context.Context, provider string, r fleet.PeeringReport) error
}

// Entities reads what the entities publish, without a worker.
type Entities interface {
	// Remembered is a provider as it was last read, and how long ago; zero and an age of more than a year when it never
	// was. It reads nothing.
	Remembered(provider string) (s fleet.ProviderSnapshot, age time.Duration)
	// Provider is one of them, at most half a second old; Status is it read anew. fleet.ErrNotRunning when it does not
	// run.
	Provider(ctx context.Context, id string) (fleet.ProviderSnapshot, error)
	Status(ctx context.Context, provider string) (fleet.ProviderSnapshot, error)
	// Before is what the provider's last life has published, which ended: zero when Temporal lists none, any more.
	Before(ctx context.Context, provider string) (fleet.ProviderSnapshot, error)
	// Group is a node group, read anew. fleet.ErrNotRunning when it does not run.
	Group(ctx context.Context, name string) (fleet.Snapshot, error)
}

// Records reads the data that the observer has saved about entities, outside of Temporal. Each verb returns false, or
// zero, when the observer has saved nothing.
type Records interface {
	Group(ctx context.Context, name string) (r fleet.GroupRecord, known bool, err error)
	// Bill returns the costs of a group.
	Bill(ctx context.Context, group string) (bill money.Bill, known bool, err error)
	Cordoned(ctx context.Context, provider string) (bool, error)
}

// Workflows starts, tells and looks at single workflows.
type Workflows interface {
	// Start starts a workflow. already: one of that id runs, or has completed and is not to run again.
	Start(ctx context.Context, s Start) (already bool, err error)
	// Signal fails with fleet.ErrNotRunning when the workflow is closed.
	Signal(ctx context.Context, s Signal) error
	// Status describes a workflow; one that Temporal does not know is closed.
	Status(ctx context.Context, id string) (Status, error)
	// Cancel asks a workflow to end, Terminate ends it; one that does not run is fine.
	Cancel(ctx context.Context, id string) error
	Terminate(ctx context.Context, id, reason string) error
}

// Status is how a workflow is.
type Status struct {
	Running   bool
	Completed bool
	// Failing: its workflow task has failed at least five times, for ten minutes.
	Failing bool
	// Orphaned: it runs, but only a version of the workers may continue it that has had none for five minutes.
	Orphaned bool
}

// Activities are the steps with what they need.
type Activities struct {
	Catalog  Catalog
	Backend  backend.Backend
	Messages Messages
	Entities Entities
	// Records may be nil: then nothing was saved.
	Records   Records
	Workflows Workflows
	// Making and Removing bound how much one provider may have under way in this worker; nil means no bound.
	Making, Removing *Limiter
	// Starting bounds how many workflows are started at once in this worker, but for peerings; nil means no bound.
	Starting *semaphore.Weighted
	// Probe succeeds when something outside answers that is no provider; nil means that there is no such thing.
	Probe func(ctx context.Context) error
	// Events records what steps do as Kubernetes Events; nil records nothing.
	Events EventRecorder
	// Now is the worker's clock; nil means time.Now.
	Now func() time.Time

	own    ownFaults
	chosen chosen
}

func (a *Activities) now() time.Time {
	if a.Now == nil {
		return time.Now()
	}
	return a.Now()
}
