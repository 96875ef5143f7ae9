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
	// Version identifies this version of the config in logs, metrics and messages.
	Version string
}

// Derived reports which groups are derived from the offers. It is safe for concurrent use and does not block.
type Derived interface {
	// Derives reports whether the group is derived. Such a group ends when its template changes, and starts again when it
	// is empty.
	Derives(group string) bool
	// Refused returns the groups that the offers define but that are not listed. The key is the group's id, and the
	// value is the reason.
	Refused() map[string]string
}

// Options holds the dependencies and the first config of a Server.
type Options struct {
	// Groups is the interface to the durable node groups. Required.
	Groups Groups
	// Specs, Limits and Version hold the first version of the config, see Settings.
	Specs   []fleet.GroupSpec
	Limits  Limits
	Version string
	// Market, if not nil, returns the present offers of the providers, or false when the offers are unknown. The max
	// that CA receives depends on the offers.
	Market func() (market.Market, bool)
	// Derived, if any, reports which groups are derived from the offers.
	Derived Derived
	// Reload, if any, is called at each Refresh of CA. If the config has a new version, Reload returns this version
	// and true. Otherwise it returns false. It returns an error while the newest version is invalid. It must not
	// block for long.
	Reload func() (Settings, bool, error)
	// Ended, if not nil, reads this month's costs of ended groups. Limits of spending include these costs.
	Ended func(ctx context.Context) (money.Ended, error)
	// Polled, if not nil, reports whether a worker polls the task queue of the node groups. If no worker polls, the
	// result `why` names the missing condition; otherwise it is nil. Polled returns an error when this is unknown.
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
	growing    *semaphore.Weighted       // held while a group grows, if Limits are set
	unlimited  atomic.Int64              // running increases that began before Limits were set
	madeAt     time.Time                 // see loading
	loaded     chan struct{}             // closed by the first successful refresh
	freshAt    atomic.Pointer[time.Time] // start of the last successful refresh; nil before the first
	triedAt    atomic.Pointer[time.Time] // last iteration of KeepWarm, see Alive; nil before it runs
	calledAt   atomic.Int64              // CA's last Refresh on this server, in unix nanoseconds; 0 if CA has never called
	failing    atomic.Pointer[problem]   // error of KeepWarm's last refresh; nil when it succeeded
	unpolled   atomic.Pointer[problem]   // why no worker polls; nil if one polls, or if unknown
	polledAt   atomic.Pointer[time.Time] // when a worker was last seen

	polled func(ctx context.Context) (why error, err error) // see Options

	market  func() (market.Market, bool)
	figures atomic.Pointer[map[string]figure] // see measure; nil without a market
	foreign atomic.Int64                      // offers in another currency, see countForeign
	// measuring is held while figures are computed.
	measuring sync.Mutex

	derived   Derived
	reload    func() (Settings, bool, error)
	reloading sync.Mutex                  // guards changes of roster, of terms and of config
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

// group returns the served group with this id, or NotFound. CA may have received the id from another replica that has
// a newer config. Therefore group reads the config again before it returns NotFound.
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

// Groups is the interface to the durable node groups.
//
// A mutation is applied completely or not at all, and is durable when it returns. Each mutation sends the newest
// position of the group that this server has seen. A group that is behind that position has lost history, and
// rebuilds its state from the existing objects. A mutation returns the position that the group has reached with the
// mutation. Snapshots at this position or later show the mutation. A mutation ends when ctx ends, and never runs
// after the deadline of ctx.
//
// If the error is a *fleet.Refusal or fleet.ErrUnavailable, nothing has changed. When Temporal does not answer, the
// error is fleet.ErrUnavailable together with fleet.ErrTemporal. After any other error of a mutation, such as
// fleet.ErrOutcomeUnknown, the outcome is unknown. All methods are safe for concurrent use.
type Groups interface {
	// Configure sends the spec and the notice to the group, and starts the group when it does not run. A repeated
	// call with the same spec and notice changes nothing.
	Configure(ctx context.Context, spec fleet.GroupSpec, notice fleet.GroupNotice, seen fleet.Position) (fleet.Position,
		error)
	// Grow books delta new instances; delta is positive. The hourly price of each is at most priceCap; 0 means no
	// bound. Two calls are two operations.
	Grow(ctx context.Context, group string, delta int, priceCap float64, seen fleet.Position) (fleet.Position, error)
	// Shrink cancels counted instances whose nodes have not registered, the youngest first. It cancels at most delta
	// instances; delta is positive. It returns a refusal only when no such instance exists.
	Shrink(ctx context.Context, group string, delta int, seen fleet.Position) (fleet.Position, error)
	// NewCall returns an operation that releases the named instances. The caller of the operation stops waiting when
	// ctx ends.
	NewCall(ctx context.Context, names []string) fleet.Call
	// ReleaseEach releases the instances that the calls name, and checks each call separately. The result `refused`
	// contains the refusal of each call that changed nothing, by the index of the call. err is an error of all calls.
	// ReleaseEach is idempotent, and accepts the names of released instances.
	ReleaseEach(ctx context.Context, group string, calls []fleet.Call, seen fleet.Position) (at fleet.Position,
		refused map[int]fleet.Refusal, err error)
	// Snapshot reads the group's last published snapshot. It needs no worker. The snapshot shows every mutation that
	// returned earlier. There is one exception: if the group could not publish the mutation, the position of the
	// snapshot is older than the position that the mutation returned. Snapshot returns fleet.ErrNotRunning when the
	// group does not run, and fleet.RefusedNotInitialised when the group has published nothing yet.
	Snapshot(ctx context.Context, group string) (fleet.Snapshot, error)
	// Running lists the ids of the running groups, configured or not. The list may be some seconds old.
	Running(ctx context.Context) ([]string, error)
	// Close ends an empty group. Configure can start it again, with a new epoch. Close is idempotent.
	Close(ctx context.Context, group string) error
}
