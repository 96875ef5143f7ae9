package grpcserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// Settings holds the content of one version of the config.
type Settings struct {
	// Specs lists the node groups, with unique ids.
	Specs []fleet.GroupSpec
	// Limits bound all groups together.
	Limits Limits
	// Version identifies the version in logs, metrics and messages.
	Version string
}

// Derived reports which groups are derived from the offers. It is safe for concurrent use and waits for nothing.
type Derived interface {
	// Derives reports whether the group is derived. Such a group ends when its template changes, and starts again when it
	// is empty.
	Derives(group string) bool
	// Refused maps the ids of groups that could be derived to the reasons for which they are not.
	Refused() map[string]string
}

// Options holds the dependencies and the first config of a Server.
type Options struct {
	// Groups is the port to the durable node groups. Required.
	Groups Groups
	// Specs, Limits and Version hold the first version of the config, see Settings.
	Specs   []fleet.GroupSpec
	Limits  Limits
	Version string
	// Market, if not nil, returns the present offers of the providers, or false when they are unknown. The max that CA
	// receives depends on them.
	Market func() (market.Market, bool)
	// Derived, if any, reports which groups are derived from the offers.
	Derived Derived
	// Reload, if any, is called at each Refresh of CA. It returns true with a new version of the config, false without
	// one, and an error while the newest version is broken. It must not block for long.
	Reload func() (Settings, bool, error)
	// Ended, if not nil, reads this month's costs of ended groups. Limits of spending include these costs.
	Ended func(ctx context.Context) (money.Ended, error)
	// Polled, if not nil, reports whether a worker polls the task queue of the node groups. why is nil if a worker polls,
	// and names the missing condition otherwise. err is set when this is unknown.
	Polled func(ctx context.Context) (why error, err error)
	// Logger receives the server's logs; nil means slog.Default().
	Logger *slog.Logger
}

// Server implements CA's CloudProvider service. Create it with New, load its view with Start or KeepWarm, and serve it
// with Serve. All its methods are safe for concurrent use.
type Server struct {
	protos.UnimplementedCloudProviderServer

	groups     Groups
	log        *slog.Logger
	roster     atomic.Pointer[roster]    // the served groups; never nil
	searched   atomic.Bool               // findRetired has searched for unconfigured groups that run
	searchedAt atomic.Int64              // time of the last search, in unix nanoseconds
	growing    *semaphore.Weighted       // held while a group grows, if limits bound all groups
	unlimited  atomic.Int64              // groups that started to grow without growing, when no limits existed
	madeAt     time.Time                 // see loading
	loaded     chan struct{}             // closed by the first good refresh
	freshAt    atomic.Pointer[time.Time] // start of the last successful refresh; nil before the first
	triedAt    atomic.Pointer[time.Time] // last iteration of KeepWarm, see Alive; nil before it runs
	calledAt   atomic.Int64              // CA's last Refresh on this server, in unix nanoseconds; 0 for never
	failing    atomic.Pointer[problem]   // error of KeepWarm's last refresh; nil when it succeeded
	unpolled   atomic.Pointer[problem]   // why no worker serves the groups; nil while one does or it is unknown
	polledAt   atomic.Pointer[time.Time] // when a worker was last seen

	polled func(ctx context.Context) (why error, err error) // see Options

	market  func() (market.Market, bool)
	figures atomic.Pointer[map[string]figure] // see measure; nil without a market
	foreign atomic.Int64                      // offers in another currency, see countForeign
	// measuring serialises the computation of figures.
	measuring sync.Mutex

	derived   Derived
	reload    func() (Settings, bool, error)
	reloading sync.Mutex                  // guards changes of the roster and of terms, and the next field
	config    atomic.Pointer[configState] // never nil
	ended     ended
	spending  sync.Map // maps an account to a *semaphore.Weighted that is held while one of its groups grows
}

var _ protos.CloudProviderServer = (*Server)(nil)

// New returns a Server. It makes no request yet.
func New(o Options) (*Server, error) {
	if o.Groups == nil {
		return nil, errors.New("make grpc server: Groups is missing")
	}
	s := &Server{groups: o.Groups, log: cmp.Or(o.Logger, slog.Default()), growing: semaphore.NewWeighted(1),
		madeAt: time.Now(), loaded: make(chan struct{}), derived: o.Derived, reload: o.Reload, market: o.Market,
		polled: o.Polled, ended: ended{read: o.Ended}}
	all, err := s.termsOf(o.Specs)
	if err != nil {
		return nil, fmt.Errorf("make grpc server: %w", err)
	}
	list := make([]*group, len(all))
	for i, t := range all {
		list[i] = newGroup(t)
	}
	s.roster.Store(newRoster(list, o.Limits))
	s.config.Store(&configState{version: o.Version, since: time.Now()})
	return s, nil
}

// group returns a served group, and NotFound for any other id. CA may have received an id from another replica with a
// newer config, so group reads the config again before it returns NotFound.
func (s *Server) group(id string) (*group, error) {
	if g := s.roster.Load().byID[id]; g != nil {
		return g, nil
	}
	s.reread()
	if g := s.roster.Load().byID[id]; g != nil {
		return g, nil
	}
	return nil, status.Errorf(codes.NotFound, "node group %q is not configured here", id)
}

// Groups is the port to the durable node groups.
//
// Mutations are applied completely or not at all, and are durable when they return. Each one carries the newest
// position of the group that this server has seen. A group that is behind that position has lost history, and rebuilds
// its state from the existing objects. A mutation returns the position that the group has reached with it, from which
// on Snapshot shows it. Mutations end with ctx and never run after its deadline has passed.
//
// Errors of all methods: *fleet.Refusal (nothing changed); fleet.ErrUnavailable (nothing changed), together with
// fleet.ErrTemporal when Temporal does not answer; fleet.ErrOutcomeUnknown (mutations only; any other error counts as
// fleet.ErrOutcomeUnknown). All methods are safe for concurrent use.
type Groups interface {
	// Configure sends the spec and the notice to the group, and starts the group when it does not run. It is idempotent by
	// the spec's hash and the notice.
	Configure(ctx context.Context, spec fleet.GroupSpec, notice fleet.GroupNotice, seen fleet.Position) (fleet.Position,
		error)
	// Grow books delta > 0 new instances, each with an hourly price of at most priceCap; 0 means no bound. Two calls are
	// two operations.
	Grow(ctx context.Context, group string, delta int, priceCap float64, seen fleet.Position) (fleet.Position, error)
	// Shrink cancels at most delta > 0 instances that count and are not registered, youngest first. It refuses only when
	// no such instance exists.
	Shrink(ctx context.Context, group string, delta int, seen fleet.Position) (fleet.Position, error)
	// NewCall returns a release as one operation, whose caller stops waiting when the context ends.
	NewCall(ctx context.Context, names []string) fleet.Call
	// ReleaseEach releases the instances that calls name, and checks each call separately. refused maps the indexes of the
	// calls that changed nothing to their refusals; err is an error of all calls. Idempotent; names of released instances
	// are accepted.
	ReleaseEach(ctx context.Context, group string, calls []fleet.Call, seen fleet.Position) (at fleet.Position,
		refused map[int]fleet.Refusal, err error)
	// Snapshot reads the group's last published snapshot. It needs no worker. It shows every mutation that returned
	// before, unless the group could not publish it: then the snapshot is at an older position than the mutation returned.
	// It returns fleet.ErrNotRunning when the group does not run, and fleet.RefusedNotInitialised when it has published
	// nothing yet.
	Snapshot(ctx context.Context, group string) (fleet.Snapshot, error)
	// Running lists the ids of the running groups, configured or not. It may miss groups that started or ended seconds
	// ago.
	Running(ctx context.Context) ([]string, error)
	// Close ends an empty group. Configure starts it again, with a new epoch. Idempotent.
	Close(ctx context.Context, group string) error
}
