package grpcserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// These are the times of a Refresh.
const (
	refreshParallel = 32
	// startParallel bounds the groups that are started concurrently: each start waits for Temporal's database, and lists
	// the existing objects. Hundreds of concurrent starts would time out.
	startParallel = 8
	// readTimeout bounds the reading of all groups, so that a group without an answer from Temporal leaves time to
	// configure the other groups.
	readTimeout = 3 * time.Second
	// configureTimeout bounds the wait of a Refresh for the start of one group, whose first recovery takes one to two
	// seconds.
	configureTimeout = 3 * time.Second
	// loadFor bounds the time after its start for which a group that cannot be read makes the server not ready.
	loadFor = 2 * time.Minute
	// unknownFor bounds the time for which an operation's unknown outcome fails Refresh.
	unknownFor = 2 * time.Minute
)

// Refresh begins every CA loop: it puts a changed config into force, reads every group again, and configures a group
// that runs another spec or does not run. It is the only RPC that may fail because data is missing; CA then ends the
// loop and keeps its timers.
func (s *Server) Refresh(ctx context.Context, _ *protos.RefreshRequest) (*protos.RefreshResponse, error) {
	if s.calledAt.Load() != 0 && s.standby() {
		s.found.Store(false) // during this time another replica may have served configured groups
	}
	s.calledAt.Store(time.Now().UnixNano())
	s.reread()
	err := s.refresh(ctx, true)
	s.dropEmpty(ctx)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &protos.RefreshResponse{}, nil
}

// refresh reads all groups, and configures groups that do not run or run another spec. It returns an error when
// Temporal answered for no group, when a group is still unread after the start, or when the outcome of an operation is
// unknown. Any other problem concerns only its own group. byCA reports whether CA requested the refresh. Only then is
// the config the newest one (see reread) and may replace another.
func (s *Server) refresh(ctx context.Context, byCA bool) error {
	ctx, cancel := early(ctx) // so that CA receives the reason
	defer cancel()
	s.findRetired(ctx)
	began := time.Now()
	list := s.roster.Load().list
	errs, configure := make([]error, len(list)), make([]bool, len(list))
	reading, stop := context.WithTimeout(ctx, readTimeout)
	defer stop()
	wait.ForAll(list, refreshParallel, func(i int, g *group) { configure[i], errs[i] = s.readGroup(reading, g, byCA) })
	s.putInForce(ctx, list, configure, errs, byCA)
	away := !slices.ContainsFunc(errs, func(err error) bool { return !errors.Is(err, fleet.ErrTemporal) })
	for i, g := range list {
		errs[i] = s.recordProblem(g, errs[i], away)
	}
	s.readEnded(ctx)
	s.measure()
	s.warnOfSpending(list, time.Now())
	if err := summary(list, errs); err != nil {
		return err
	}
	for { // the latest start wins
		at := s.freshAt.Load()
		if at != nil && at.After(began) {
			return nil
		}
		if s.freshAt.CompareAndSwap(at, &began) {
			if at == nil {
				close(s.loaded)
			}
			return nil
		}
	}
}

// putInForce configures the groups that need it, and notifies the other groups. Groups that do not run are started
// concurrently, startParallel at a time; the next refresh starts the groups for which the time did not suffice.
func (s *Server) putInForce(ctx context.Context, list []*group, configure []bool, errs []error, byCA bool) {
	var running, starting []int
	for i := range list {
		if configure[i] && errors.Is(errs[i], fleet.ErrNotRunning) {
			starting = append(starting, i)
		} else {
			running = append(running, i)
		}
	}
	var both sync.WaitGroup
	both.Go(func() {
		wait.ForAll(starting, startParallel, func(_, i int) {
			if ctx.Err() == nil {
				errs[i] = s.configure(ctx, list[i], errs[i])
			}
		})
	})
	wait.ForAll(running, refreshParallel, func(_, i int) {
		if configure[i] {
			errs[i] = s.configure(ctx, list[i], errs[i])
		} else if byCA && errs[i] == nil {
			s.notify(ctx, list[i])
		}
	})
	both.Wait()
}

// readGroup updates the group's picture and reports whether to configure the group: when it does not run, was reverted
// or runs another spec. A config that was not read for CA may be older than the one in force, so it never replaces one.
func (s *Server) readGroup(ctx context.Context, g *group, byCA bool) (configure bool, err error) {
	if _, settlesAt := g.dirty(); time.Now().Before(settlesAt) {
		return false, nil // a read would not show the outcome
	}
	snapshot, first, err := s.readShared(ctx, g)
	if errors.Is(err, fleet.ErrNotRunning) || errors.Is(err, errWentBack) {
		return byCA || first, err
	}
	if err != nil {
		if ctx.Err() != nil { // no worker is needed to read
			err = fmt.Errorf("%w: %w", fleet.ErrTemporal, err)
		}
		return false, err
	}
	if first {
		s.keepTemplate(g, snapshot)
	}
	s.caughtUp(g, snapshot)
	return g.needsConfig(snapshot, byCA || first)
}

// readShared reads the group, or uses the result of another Refresh whose read started after this call. A slow Temporal
// makes many calls overlap. Each call gets a result that is as fresh as its own read, and only one call reads at a
// time. first reports that the group had not been read before.
func (s *Server) readShared(ctx context.Context, g *group) (snapshot fleet.Snapshot, first bool, err error) {
	came := time.Now()
	if err := g.reading.Acquire(ctx, 1); err != nil {
		return fleet.Snapshot{}, g.picture.Load() == nil, fmt.Errorf("wait for another read of the group: %w", err)
	}
	defer g.reading.Release(1)
	if g.readSince(came) {
		return g.picture.Load().Snapshot, false, nil
	}
	first = g.picture.Load() == nil
	snapshot, err = s.read(ctx, g)
	return snapshot, first, err
}

// needsConfig reports whether the group runs another spec than the configured one, which must be put into force now.
// Its error is the reason for which the group refused the configured spec in CA's last Refresh.
func (g *group) needsConfig(snapshot fleet.Snapshot, mayReplace bool) (bool, error) {
	if snapshot.SpecHash == g.terms.Load().hash {
		return false, nil
	}
	if mayReplace || snapshot.Spec == nil {
		return true, nil
	}
	if p := g.unusable.Load(); p != nil { // it refused its spec, which the next Refresh of CA tries again
		return false, p.error
	}
	return false, nil
}

// recordProblem returns the problem of a group if it fails Refresh, and records any other problem for the group alone.
// away reports that Temporal has answered for no group, which does not count against a single group.
func (s *Server) recordProblem(g *group, err error, away bool) error {
	if away || s.loading(g, err) {
		return err
	}
	if since, settlesAt := g.dirty(); !since.IsZero() && time.Since(since) < unknownFor {
		text := fmt.Sprintf("the outcome of its last operation is unknown and can be read in %s",
			max(0, time.Until(settlesAt)).Round(time.Millisecond))
		if err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
		return errors.New(text)
	}
	was := g.unusable.Load()
	switch {
	case err == nil && was != nil:
		g.unusable.Store(nil)
		s.log.Info("node group is available again", "group", g.id)
	case err != nil:
		g.unusable.Store(&problem{err})
		if was == nil || was.Error() != err.Error() {
			s.log.Warn("node group is unavailable: Cluster Autoscaler sees its last known state, and it does not grow or shrink",
				"group", g.id, "error", err)
		}
	}
	return nil
}

// loading reports whether a group has not been read since the server started, for a temporary reason: Temporal does not
// answer, or the group is being started. Then the server is not ready for at most loadFor, because without the group CA
// would treat its nodes as foreign and back off from the group.
func (s *Server) loading(g *group, err error) bool {
	passes := errors.Is(err, fleet.ErrTemporal) || errors.Is(err, fleet.ErrOutcomeUnknown) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, fleet.ErrNotRunning) ||
		fleet.IsRefused(err, fleet.RefusedNotInitialised)
	return passes && g.picture.Load() == nil && s.freshAt.Load() == nil && time.Since(s.madeAt) < loadFor
}

// configure puts the configured spec into force. It takes the group's turn, so that every mutation is checked against a
// single spec. Its error includes why, the reason for which the group could not be read before.
func (s *Server) configure(ctx context.Context, g *group, why error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, configureTimeout)
	defer cancel()
	defer func() {
		if err != nil && why != nil {
			err = fmt.Errorf("%w; configure: %w", why, err)
		} else if err != nil {
			err = fmt.Errorf("configure: %w", err)
		}
	}()
	if err := g.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	defer g.turn.Release(1)
	t := g.terms.Load()
	at, err := s.groups.Configure(ctx, t.spec, t.notice(), g.seen())
	if err != nil {
		return err
	}
	now, err := s.readFrom(ctx, g, at)
	if err != nil {
		return err
	}
	if now.SpecHash != t.hash {
		return fmt.Errorf("spec %s is in force instead of %s: %w", now.SpecHash, t.hash, fleet.ErrUnavailable)
	}
	s.log.Info("configured", "group", g.id, "spec", t.hash, "target", now.Target)
	return nil
}

// named bounds the ids in an error, because gRPC transfers it in a header.
const named = 20

// summary returns an error with the names of all failed groups and the reason of the first one.
func summary(list []*group, errs []error) error {
	var ids []string
	var first error
	for i, err := range errs {
		if err == nil {
			continue
		}
		if first == nil {
			first = err
		}
		ids = append(ids, list[i].id)
	}
	if first == nil {
		return nil
	}
	reason := ids[0]
	more := ""
	if len(ids) > named {
		ids, more = ids[:named], fmt.Sprintf(" and %d more", len(ids)-named)
	}
	return fmt.Errorf("refresh node groups: cannot read %s%s: %s: %w", strings.Join(ids, ", "), more, reason, first)
}
