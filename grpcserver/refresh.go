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

// These constants bound a Refresh.
const (
	// refreshParallel bounds the number of groups that are read concurrently. A thousand groups need ten round trips to
	// Temporal; if a round trip takes 250 ms, these fit into readTimeout.
	refreshParallel = 100
	// startParallel bounds the number of groups that are started concurrently. Each start waits for Temporal's
	// database, and lists the existing objects. Hundreds of starts at the same time would exceed their time limits.
	startParallel = 8
	// readTimeout bounds the time in which all groups are read. It leaves time to configure the other groups if
	// Temporal does not answer for one group.
	readTimeout = 3 * time.Second
	// configureTimeout bounds the time for which a Refresh waits until one group is configured. If the group must be
	// started, it first lists the existing objects, which takes one to two seconds.
	configureTimeout = 3 * time.Second
	// loadFor is the time after the server's start for which a group that cannot be read may make the server unready.
	loadFor = 2 * time.Minute
	// unknownFor bounds the time for which the unknown outcome of an operation makes Refresh fail.
	unknownFor = 2 * time.Minute
)

// Refresh applies a changed config and reads every group again. It configures each group that does not run, or that
// runs another spec than the configured one. CA calls it at the start of every loop. It is the only RPC that may fail
// because data is missing: CA then ends the loop and keeps its timers.
func (s *Server) Refresh(ctx context.Context, _ *protos.RefreshRequest) (*protos.RefreshResponse, error) {
	if s.calledAt.Load() != 0 && s.standby() {
		s.searched.Store(false) // while this server was a standby, another replica may have started groups
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
// Temporal answered for no group, when a group has not been read since the server's start (see loading), or when the
// outcome of an operation is unknown. Any other problem affects only the group that has it. byCA reports whether CA
// requested the refresh. In this case the server has just read the config, so that its spec may replace the spec of a
// running group.
func (s *Server) refresh(ctx context.Context, byCA bool) error {
	ctx, cancel := beforeDeadline(ctx) // so that CA receives the reason
	defer cancel()
	s.findRetired(ctx)
	began := time.Now()
	list := s.roster.Load().list
	errs, configure := make([]error, len(list)), make([]bool, len(list))
	reading, stop := context.WithTimeout(ctx, readTimeout)
	defer stop()
	wait.ForAll(list, refreshParallel, func(i int, g *group) { configure[i], errs[i] = s.readGroup(reading, g, byCA) })
	s.configureGroups(ctx, list, configure, errs, byCA)
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
	for { // if refreshes run concurrently, freshAt is the start of the latest one
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

// configureGroups configures the groups for which configure is true, and updates the notices of the other groups.
// Groups that do not run are started concurrently, at most startParallel groups at the same time. If ctx ends first,
// the next refresh starts the remaining groups.
func (s *Server) configureGroups(ctx context.Context, list []*group, configure []bool, errs []error, byCA bool) {
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

// readGroup updates the group's picture, and reports whether the group must be configured: because it does not run,
// because its history was reset, or because it runs another spec. If byCA is false, the server's config may be
// outdated. readGroup then returns true only at the server's first read of the group, or if the group has no spec.
func (s *Server) readGroup(ctx context.Context, g *group, byCA bool) (configure bool, err error) {
	if _, settlesAt := g.dirty(); time.Now().Before(settlesAt) {
		return false, nil // a read that starts before settlesAt does not prove the outcome
	}
	snapshot, first, err := s.readShared(ctx, g)
	if errors.Is(err, fleet.ErrNotRunning) || errors.Is(err, errLostHistory) {
		return byCA || first, err
	}
	if err != nil {
		if ctx.Err() != nil { // reading needs no worker, so Temporal is slow
			err = fmt.Errorf("%w: %w", fleet.ErrTemporal, err)
		}
		return false, err
	}
	if first {
		s.keepTemplate(g, snapshot)
	}
	s.endRetirement(g, snapshot)
	return g.needsConfig(snapshot, byCA || first)
}

// readShared reads the group. If another Refresh has started to read the group after this call began, readShared
// returns the result of that read. This result is as new as if readShared had read the group itself. Only one call
// reads at a time, because many calls overlap when Temporal is slow. The result `first` reports that the group had
// not been read before.
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

// needsConfig reports whether the configured spec must be sent to the group now, because the group runs another spec.
// If mayReplace is false, it returns true only for a group that has no spec. It returns an error if the group refused
// the configured spec in CA's last Refresh.
func (g *group) needsConfig(snapshot fleet.Snapshot, mayReplace bool) (bool, error) {
	if snapshot.SpecHash == g.terms.Load().hash {
		return false, nil
	}
	if mayReplace || snapshot.Spec == nil {
		return true, nil
	}
	if p := g.unusable.Load(); p != nil { // the group refused its spec; CA's next Refresh sends it again
		return false, p.error
	}
	return false, nil
}

// recordProblem returns the group's error if Refresh must fail with this error. Otherwise it records the error for
// this group alone and returns nil. If away is true, Temporal answered for no group. The group has not caused this
// problem, and recordProblem returns the error but does not record it.
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

// loading reports whether the server has not read the group yet, for a temporary reason: Temporal does not answer, or
// the group is being started. The server is then unready, but only until its first successful refresh, and for at
// most loadFor after its start. If the server omitted the group instead, CA would treat the group's nodes as foreign
// and back off from the group.
func (s *Server) loading(g *group, err error) bool {
	passes := errors.Is(err, fleet.ErrTemporal) || errors.Is(err, fleet.ErrOutcomeUnknown) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, fleet.ErrNotRunning) ||
		fleet.IsRefused(err, fleet.RefusedNotInitialised)
	return passes && g.picture.Load() == nil && s.freshAt.Load() == nil && time.Since(s.madeAt) < loadFor
}

// configure sends the configured spec to the group. It waits for the group's turn, so that the spec does not change
// during a mutation. The parameter `why` is the error of the read before this call, or nil. The error of configure
// includes the error why.
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

// maxNamed bounds the number of ids in an error, because gRPC transfers the error in a header of limited size.
const maxNamed = 20

// summary returns one error for all errors in errs. It contains the ids of the groups that failed, and the first
// error.
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
	if len(ids) > maxNamed {
		ids, more = ids[:maxNamed], fmt.Sprintf(" and %d more", len(ids)-maxNamed)
	}
	return fmt.Errorf("refresh node groups: cannot read %s%s: %s: %w", strings.Join(ids, ", "), more, reason, first)
}
