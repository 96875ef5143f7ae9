package observer

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/logonce"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// These constants are the times of the rounds.
const (
	// Every is the time between the beginnings of two rounds.
	Every = time.Minute
	// soonAfter replaces Every after a round that found evidence of a loss. The next round then confirms or refutes it.
	soonAfter = 20 * time.Second
	// roundBound limits the duration of a round. After this time its data is too old for a decision.
	roundBound = 50 * time.Second
	// giveUpAfter is the time without a complete round after which a leader gives up the Lease.
	giveUpAfter = 2 * time.Minute
)

// Entities reads and starts the entities of the hub: the workflows of node groups and providers. It reads the data
// that the entities have published, so it needs no worker.
type Entities interface {
	// Group returns the snapshot of a node group, or fleet.ErrNotRunning.
	Group(ctx context.Context, name string) (fleet.Snapshot, error)
	// Status returns the snapshot of a provider's entity, or fleet.ErrNotRunning.
	Status(ctx context.Context, provider string) (fleet.ProviderSnapshot, error)
	// GroupNames and ProviderNames list the running entities from Temporal's visibility index, which may lack some
	// entities.
	GroupNames(ctx context.Context) ([]string, error)
	ProviderNames(ctx context.Context) ([]string, error)
	// Ensure starts a provider's entity if the entity does not run, and reports whether it has started the entity.
	Ensure(ctx context.Context, provider string) (started bool, err error)
}

// Messages delivers messages to entities by signals. A method returns when Temporal has stored the signal. It returns
// fleet.ErrNotRunning when the group or the provider does not run.
type Messages interface {
	// GroupDiffers sends the differences to a node group.
	GroupDiffers(ctx context.Context, group string, d fleet.Differences) error
	// ProviderDiffers sends the differences to a provider's entity.
	ProviderDiffers(ctx context.Context, provider string, d fleet.Differences) error
	// Holds sends requests about holds to a provider's entity.
	Holds(ctx context.Context, provider string, requests ...fleet.HoldRequest) error
}

// Backend is the part of backend.Backend that the observer uses.
type Backend interface {
	List(ctx context.Context, scope backend.Scope) ([]fleet.Found, error)
	Peers(ctx context.Context, provider string) ([]fleet.Provider, error)
	Observe(ctx context.Context, provider fleet.Provider) (backend.Observation, error)
	Cordon(ctx context.Context, attempt fleet.Attempt, cordoned bool) error
}

// Mirror shows the groups as objects of the cluster, for people.
type Mirror interface {
	// Groups replaces the groups. It does not block. unread are the names of the groups that the round could not read, and
	// ended contains the costs of ended groups.
	Groups(groups []fleet.Snapshot, unread []string, ended []money.Spent)
	// Run writes the groups to the cluster until ctx ends.
	Run(ctx context.Context)
}

// Observer runs the rounds of one hub. At most one process may run them at a time: see Run.
type Observer struct {
	Entities Entities
	Messages Messages
	Backend  Backend
	Catalog  discovery.Catalog
	// Witness reports whether this process can reach any party other than the silent providers.
	Witness func(ctx context.Context, silent []string) (bool, error)
	// Hub is called before each round. It returns an error if the hub belongs to another cluster, and otherwise the hub's
	// state, which shows whether an operator has paused the observer. nil means that the observer skips both checks.
	Hub func(ctx context.Context) (workflows.HubState, error)
	// Memory stores the state of the rounds for the next leader. nil stores nothing.
	Memory Memory
	// Costs stores the bills of the groups, and Accounts reads their costs. If Costs or Accounts is nil, the observer
	// saves no bills.
	Costs    Memory
	Accounts Accounts
	// Positions is the document with the positions that groups have saved. nil means that groups save none.
	Positions Shared
	// Conditions, if any, receives the conditions of the providers.
	Conditions *activities.Conditions
	// Pods, if any, receives the pods that are bound to a virtual node and do not run.
	Pods *Pods
	// Kept, if any, receives the Nodes that are kept for volumes.
	Kept *Kept
	// Events, if any, records removals.
	Events activities.EventRecorder
	// Mirror, if any, shows the groups in the cluster.
	Mirror Mirror
	Logger *slog.Logger
	// Every is the time between the beginnings of two rounds; 0 means the constant Every.
	Every time.Duration

	requested   chan chan error // requests of RoundNow
	requestOnce sync.Once
	progress    progress
	bills       bills
	seen        podsSeen
	logged      logonce.LastError
}

// errSuperseded means that an entity has published the term of a newer observer.
var errSuperseded = errors.New("another process runs the observer with a higher term")

// Run runs rounds until ctx ends, until an observer with a higher term runs, or until no round was complete for
// giveUpAfter. It logs the errors of rounds. The caller must hold the hub's Lease during the call, and release it when
// Run returns.
func (o *Observer) Run(ctx context.Context) {
	s := o.restore(ctx)
	defer o.progress.end()
	complete := time.Now()
	for ctx.Err() == nil {
		began := time.Now()
		next, err := o.round(ctx, s)
		o.progress.round(err, began)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			s, complete = next, began
			o.save(ctx, s)
		case errors.Is(err, errSuperseded), time.Since(complete) > giveUpAfter:
			o.Logger.Warn("the observer stops; another worker may lead now", "error", err)
			o.answer(err)
			return
		}
		if err != nil {
			s.Round.Number++ // so that the numbers of the rounds before and after the failure are not consecutive
		}
		if o.logged.IsNew(err) {
			o.Logger.Warn("a round of the observer failed; the next round reads everything again", "error", err)
		}
		o.answer(err)
		if !o.wait(ctx, began.Add(o.pause(s))) {
			return
		}
	}
}

// every returns the time between the beginnings of two rounds.
func (o *Observer) every() time.Duration { return cmp.Or(o.Every, Every) }

// pause returns the time from the beginning of a round to the beginning of the next one.
func (o *Observer) pause(s state) time.Duration {
	if s.soon {
		return min(o.every(), soonAfter)
	}
	return o.every()
}
