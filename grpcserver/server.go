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

// Settings are what one version of the config says.
type Settings struct {
	// Specs are the node groups, with unique ids.
	Specs []fleet.GroupSpec
	// Limits bound all groups together.
	Limits Limits
	// Version tells versions apart, for people.
	Version string
}

// Derived tells which groups are made of what is offered. It is safe for concurrent use and waits for nothing.
type Derived interface {
	// Derives reports whether the group is one: when its template changes it ends, and begins anew once it is empty.
	Derives(group string) bool
	// Refused says why a group that could be one is not, by id.
	Refused() map[string]string
}

// Options are what a Server is made of.
type Options struct {
	// Groups is the port to the durable node groups. Required.
	Groups Groups
	// Specs, Limits and Version are the first version of the config, see Settings.
	Specs   []fleet.GroupSpec
	Limits  Limits
	Version string
	// Market, if any, is what the providers offer now, and false when that is not known. Max follows it.
	Market func() (market.Market, bool)
	// Derived, if any, tells which groups are made of what is offered.
	Derived Derived
	// Reload, if any, is asked at each Refresh of CA: true with a new version of the config, false when nothing is new,
	// an error as long as the newest version is broken. It must not block for long.
	Reload func() (Settings, bool, error)
	// Ended, if any, reads what groups that have ended cost in their last month. Limits of spending count them.
	Ended func(ctx context.Context) (money.Ended, error)
	// Polled, if any, reports whether a worker serves the node groups: why is nil while one does, and says what is missing
	// otherwise. err says that this is not known.
	Polled func(ctx context.Context) (why error, err error)
	// Logger is where the server logs; nil means slog.Default().
	Logger *slog.Logger
}

// Server implements CA's CloudProvider service. Make it with New, load its view with Start or KeepWarm, serve it with
// Serve. All its methods are safe for concurrent use.
type Server struct {
	protos.UnimplementedCloudProviderServer

	groups    Groups
	log       *slog.Logger
	roster    atomic.Pointer[roster]    // what is served now; never nil
	found     atomic.Bool               // groups that run but are not configured have been looked for, see findRetired
	foundAt   atomic.Int64              // when they were last looked for, in unix nanoseconds
	growing   *semaphore.Weighted       // only who holds it may grow a group while limits bind all
	unlimited atomic.Int64              // groups that grow without it: there were no limits when they began
	madeAt    time.Time                 // see loading
	loaded    chan struct{}             // closed by the first good refresh
	freshAt   atomic.Pointer[time.Time] // when the last good refresh began; nil before the first
	triedAt   atomic.Pointer[time.Time] // when KeepWarm last came round, see Alive; nil before it runs
	calledAt  atomic.Int64              // when CA last called Refresh here, in unix nanoseconds; 0 when it never did
	failing   atomic.Pointer[problem]   // why KeepWarm could not refresh the last time; nil when it could
	unpolled  atomic.Pointer[problem]   // why no worker serves the groups; nil while one does, or nobody knows
	polledAt  atomic.Pointer[time.Time] // when a worker was last seen

	polled func(ctx context.Context) (why error, err error) // see Options

	market  func() (market.Market, bool)
	figures atomic.Pointer[map[string]figure] // see measure; nil without a market
	foreign atomic.Int64                      // offers in another currency, see countForeign
	// measuring orders those who work figures out.
	measuring sync.Mutex

	derived   Derived
	reload    func() (Settings, bool, error)
	reloading sync.Mutex                  // guards every change of the roster and of terms, and what follows
	config    atomic.Pointer[configState] // never nil
	ended     ended
	spending  sync.Map // by account: a *semaphore.Weighted, whose holder may grow a group of the account
}

var _ protos.CloudProviderServer = (*Server)(nil)

// New makes a Server. It calls nothing yet.
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

// group finds a group that is served; NotFound for any other id. CA asks for an unknown one when it has learnt of it
// from another replica, so the config is read first.
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
// Mutations are all or nothing and durable when they return. Each one carries the newest position of the group that
// this server has seen; a group that is behind that position begins anew from what exists. It returns the position that
// the group has reached with it, from which on Snapshot shows it. They bound themselves by ctx and never run after its
// deadline has passed.
//
// Errors of all methods: *fleet.Refusal (nothing changed); fleet.ErrUnavailable (nothing changed), together with
// fleet.ErrTemporal when Temporal cannot be asked; fleet.ErrOutcomeUnknown (mutations only; any other error counts as
// that). All methods are safe for concurrent use.
type Groups interface {
	// Configure puts the group's spec in force, with what there is to say of it, and starts the group when it does not
	// run. Idempotent by the spec's hash and the notice.
	Configure(ctx context.Context, spec fleet.GroupSpec, notice fleet.GroupNotice, seen fleet.Position) (fleet.Position,
		error)
	// Grow books delta > 0 new instances, each of which may cost priceCap in an hour; 0 is no bound. Two calls are two
	// operations.
	Grow(ctx context.Context, group string, delta int, priceCap float64, seen fleet.Position) (fleet.Position, error)
	// Shrink cancels at most delta > 0 instances that count and are not registered, youngest first; it refuses only
	// when there is none.
	Shrink(ctx context.Context, group string, delta int, seen fleet.Position) (fleet.Position, error)
	// NewCall is a release as one operation, whose caller gives up when the context ends.
	NewCall(ctx context.Context, names []string) fleet.Call
	// ReleaseEach releases the instances that calls name, and judges each call separately. refused has the calls that
	// changed nothing, by their index; err is an error of all calls. Idempotent; names of released instances are fine.
	ReleaseEach(ctx context.Context, group string, calls []fleet.Call, seen fleet.Position) (at fleet.Position,
		refused map[int]fleet.Refusal, err error)
	// Snapshot reads what the group last published. It needs no worker. It shows every mutation that returned before,
	// unless the group could not publish it: then the snapshot is at an older position than the mutation returned.
	// fleet.ErrNotRunning when the group does not run, fleet.RefusedNotInitialised when it has published nothing yet.
	Snapshot(ctx context.Context, group string) (fleet.Snapshot, error)
	// Running lists the ids of the groups that run, configured or not. It may miss what started or ended seconds ago.
	Running(ctx context.Context) ([]string, error)
	// Close ends an empty group. Configure starts it anew, with a new epoch. Idempotent.
	Close(ctx context.Context, group string) error
}
