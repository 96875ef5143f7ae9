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

// Times of the rounds.
const (
	// Every is the time between the beginnings of two rounds. It is soonAfter when a round has found evidence by which the
	// next round may give an instance up.
	Every     = time.Minute
	soonAfter = 20 * time.Second
	// roundBound ends a round, because the data that it has read is then too old for a decision.
	roundBound = 50 * time.Second
	// giveUpAfter is the time without a complete round after which a leader lets another process try.
	giveUpAfter = 2 * time.Minute
)

// Entities reads and starts the entities of the hub, by id, without a worker.
type Entities interface {
	Group(ctx context.Context, name string) (fleet.Snapshot, error)
	Status(ctx context.Context, provider string) (fleet.ProviderSnapshot, error)
	// GroupNames and ProviderNames list the running entities, from an index that may lack some.
	GroupNames(ctx context.Context) ([]string, error)
	ProviderNames(ctx context.Context) ([]string, error)
	// Ensure starts a provider's entity when it does not run.
	Ensure(ctx context.Context, provider string) (started bool, err error)
}

// Messages delivers messages to entities. Errors: fleet.ErrNotRunning when a group or a provider does not run.
type Messages interface {
	GroupDiffers(ctx context.Context, group string, d fleet.Differences) error
	ProviderDiffers(ctx context.Context, provider string, d fleet.Differences) error
	Holds(ctx context.Context, provider string, requests ...fleet.HoldRequest) error
}

// Backend is the part of a backend.Backend that the observer uses.
type Backend interface {
	List(ctx context.Context, group string) ([]fleet.Found, error)
	Peers(ctx context.Context) ([]fleet.Provider, error)
	Observe(ctx context.Context, provider fleet.Provider) (backend.Observation, error)
	Cordon(ctx context.Context, attempt fleet.Attempt, cordoned bool) error
}

// Mirror shows the groups in the cluster, for people.
type Mirror interface {
	// Groups replaces the groups. It does not block. Groups that the round could not read are unread, and ended has the
	// costs of ended groups.
	Groups(groups []fleet.Snapshot, unread []string, ended []money.Spent)
	// Run writes the groups to the cluster until ctx ends.
	Run(ctx context.Context)
}

// Observer runs the rounds of one hub. At most one process runs them at a time, see Run.
type Observer struct {
	Entities Entities
	Messages Messages
	Backend  Backend
	Catalog  discovery.Catalog
	// Witness reports whether this process can reach any party in addition to the silent providers.
	Witness func(ctx context.Context, silent []string) (bool, error)
	// Hub reads, before each round, whether the hub still belongs to this cluster, and whether an operator has paused the
	// observer. With nil, the hub belongs to this cluster and the observer is not paused.
	Hub func(ctx context.Context) (workflows.HubState, error)
	// Memory keeps the state of the rounds for the next leader. nil keeps nothing.
	Memory Memory
	// Costs keeps the bills of the groups, and Accounts reads their costs. With nil the observer keeps no bills.
	Costs    Memory
	Accounts Accounts
	// Conditions and Pods, if any, receive the conditions of providers, and the pods that do not run on virtual nodes.
	// Events, if any, records removals.
	Conditions *activities.Conditions
	Pods       *Pods
	// Kept, if any, receives the Nodes that are kept for volumes.
	Kept   *Kept
	Events activities.EventRecorder
	// Mirror, if any, shows the groups in the cluster.
	Mirror Mirror
	Logger *slog.Logger
	// Every is the time between the beginnings of two rounds; 0 means the constant Every.
	Every time.Duration

	asked    chan chan error // requests of RoundNow
	asking   sync.Once
	progress progress
	bills    bills
	seen     podsSeen
	logged   logonce.LastError
}

// errSuperseded means that another observer has a higher term.
var errSuperseded = errors.New("another process has observed with a higher term")

// Run runs rounds until ctx ends, until another process has taken over, or until no round was complete for giveUpAfter.
// The caller must hold the hub's Lease during the call, and release it when Run returns.
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
			o.Logger.Warn("the observer gives up; another worker may take over", "error", err)
			o.answer(err)
			return
		}
		if err != nil {
			s.Round.Number++ // the rounds before and after a failed one are not two in a row
		}
		if o.logged.IsNew(err) {
			o.Logger.Warn("a round of the observer failed; the next one begins anew", "error", err)
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
