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

// Times of a Refresh.
const (
	refreshParallel = 32
	// startParallel bounds the groups that are started concurrently: each start waits for Temporal's database, and lists
	// what exists. Hundreds that start at once would time each other out.
	startParallel = 8
	// readTimeout bounds the reading of all groups: one that Temporal does not answer for leaves time to configure others.
	readTimeout = 3 * time.Second
	// configureTimeout bounds how long a Refresh waits for one group to start: its first recovery takes one to two
	// seconds.
	configureTimeout = 3 * time.Second
	// loadFor bounds how long after its start the server is not ready because it could not read a group yet.
	loadFor = 2 * time.Minute
	// unknownFor bounds how long the unknown outcome of an operation fails Refresh.
	unknownFor = 2 * time.Minute
)

// Refresh begins every CA loop: it puts a changed config in force, reads every group anew, and configures a group
// that runs another spec or does not run. It is the one RPC that may fail for want of data; CA then ends the loop and
// keeps its timers.
func (s *Server) Refresh(ctx context.Context, _ *protos.RefreshRequest) (*protos.RefreshResponse, error) {
	if s.calledAt.Load() != 0 && s.standby() {
		s.found.Store(false) // another replica may have served groups that were in the config meanwhile
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

// refresh reads all groups, and configures those that do not run or run another spec. Its error says that Temporal
// answered for no group, that a group is still unread after the start, or that the outcome of an operation is unknown;
// any other problem concerns its group alone.
// byCA reports whether CA asks: only then is the config the newest one (see reread) and may replace another.
func (s *Server) refresh(ctx context.Context, byCA bool) error {
	ctx, cancel := early(ctx) // so that CA learns the reason
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
		errs[i] = s.judge(g, errs[i], away)
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

// putInForce configures the groups that were found to need it, and notifies the others. Groups that do not run are
// started concurrently, startParallel at a time; the next refresh starts those for which the time did not suffice.
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

// readGroup brings the group's picture up to date and reports whether the group is to be configured: when it does not
// run, has gone back or runs another spec. A config that was not read for CA may be older than the one in force, so it
// replaces none.
func (s *Server) readGroup(ctx context.Context, g *group, byCA bool) (configure bool, err error) {
	if _, settlesAt := g.dirty(); time.Now().Before(settlesAt) {
		return false, nil // a read would not tell the outcome
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

// readShared reads the group, or takes what another Refresh has read that began to read later than this one came. So of
// calls that overlap, which a slow Temporal makes many, each gets what is as fresh as if it had read by itself, and no
// more than one reads at a time. first: the group had not been read before.
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

// needsConfig reports whether the group runs another spec than the configured one, which is to be put in force now. Its
// error is why the group refused the configured spec when CA last asked.
func (g *group) needsConfig(snapshot fleet.Snapshot, mayReplace bool) (bool, error) {
	if snapshot.SpecHash == g.terms.Load().hash {
		return false, nil
	}
	if mayReplace || snapshot.Spec == nil {
		return true, nil
	}
	if p := g.unusable.Load(); p != nil { // it refused its spec, which is tried again when CA asks
		return false, p.error
	}
	return false, nil
}

// judge returns the problem of a group that fails Refresh; any other problem it records for the group alone. away:
// Temporal has answered for no group, which says nothing against one.
func (s *Server) judge(g *group, err error, away bool) error {
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

// loading reports whether a group could not be read yet since the server began, for a reason that passes: Temporal does
// not answer, or the group is just being started. The server is then not ready for at most loadFor: without the group,
// CA would take its nodes for foreign ones, and back it off.
func (s *Server) loading(g *group, err error) bool {
	passes := errors.Is(err, fleet.ErrTemporal) || errors.Is(err, fleet.ErrOutcomeUnknown) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, fleet.ErrNotRunning) ||
		fleet.IsRefused(err, fleet.RefusedNotInitialised)
	return passes && g.picture.Load() == nil && s.freshAt.Load() == nil && time.Since(s.madeAt) < loadFor
}

// configure puts the configured spec in force. It takes the group's turn, so that no mutation is judged by two specs.
// Its error includes why, if the group could not be read before.
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

// named bounds the ids in an error: gRPC carries it in a header.
const named = 20

// summary names all groups that failed and tells the first one's reason.
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
