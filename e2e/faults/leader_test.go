package faults

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
)

var minutes = flag.Int("minutes", 3, "for how many minutes a leader is frozen, Temporal hangs, leaders are replaced")

// leaders are the parts in which the leader of the hub, or Temporal, fails.
var leaders = []part{
	{"leader killed", leaderKilled}, {"leader frozen", leaderFrozen}, {"two leaders", twoLeaders},
	{"a leader a minute", leaderEachMinute}, {"Temporal hangs", temporalHangs},
}

// leader returns the number of the worker that holds the lock of the leader.
func (s *stack) leader() int {
	s.t.Helper()
	leads := -1
	s.ca.Until(limit, "a worker leads", func() error {
		info, err := os.Stat(s.world.Path() + ".lead")
		if err != nil {
			return err
		}
		locks, err := os.ReadFile("/proc/locks")
		if err != nil {
			return err
		}
		inode := strconv.FormatUint(info.Sys().(*syscall.Stat_t).Ino, 10)
		for line := range strings.Lines(string(locks)) {
			fields := strings.Fields(line) // 1: FLOCK ADVISORY WRITE <pid> <device>:<inode> 0 EOF
			if len(fields) < 6 || fields[1] != "FLOCK" || !strings.HasSuffix(fields[5], ":"+inode) {
				continue
			}
			for n, w := range s.workers {
				if fields[4] == strconv.Itoa(w.Pid()) {
					leads = n
					return nil
				}
			}
		}
		return fmt.Errorf("neither worker holds the lock of inode %s", inode)
	})
	return leads
}

// spread makes twelve nodes: ten on milan and two on genoa, which stay if milan dies.
func (s *stack) spread() (onGenoa map[string]string) {
	s.t.Helper()
	s.rest(12, nil)
	onGenoa = s.on("genoa")
	require.Len(s.t, onGenoa, 2)
	return onGenoa
}

// on returns the Nodes of a provider in the form of nodes.
func (s *stack) on(provider string) map[string]string {
	s.t.Helper()
	all := s.nodes()
	w, err := s.world.Snapshot()
	require.NoError(s.t, err)
	for _, node := range w.Consumer.Nodes {
		if node.Labels["liqo.io/remote-cluster-id"] != provider {
			delete(all, node.Spec.ProviderID)
		}
	}
	return all
}

// dies makes a provider unreachable and waits until none of n nodes is on it.
func (s *stack) dies(provider string, n int) {
	s.t.Helper()
	require.NoError(s.t, s.world.SetKnobs(s.t.Context(), provider, sim.Knobs{Unreachable: true}))
	s.replaced(provider, n)
}

// replaced waits until CA sees n running nodes again, and no node on the dead provider.
func (s *stack) replaced(provider string, n int) {
	s.t.Helper()
	began := time.Now()
	s.ca.Until(3*limit, "the dead provider's nodes are replaced", func() error {
		s.nodes()
		<-time.After(s.pace)
		seen, err := s.ca.Look()
		if err != nil {
			return err
		}
		if seen.Target < n {
			return fmt.Errorf("target %d: %w", seen.Target, s.ca.Grow(n-seen.Target))
		}
		w, err := s.world.Snapshot()
		if err != nil {
			return err
		}
		for _, node := range w.Consumer.Nodes {
			if node.Labels["liqo.io/remote-cluster-id"] == provider {
				return fmt.Errorf("%s is on %s", node.Name, provider)
			}
		}
		if len(seen.Running) != n {
			return fmt.Errorf("%d of %d run", len(seen.Running), n)
		}
		return nil
	})
	fmt.Printf("MEASURED %s replaced %.0f s\n", s.t.Name(), time.Since(began).Seconds())
}

// healed makes the provider healthy again, and waits until the hub is at rest without nodes.
func (s *stack) healed(provider string, kept map[string]string, n int) {
	s.t.Helper()
	require.NoError(s.t, s.world.SetKnobs(s.t.Context(), provider, sim.Knobs{}))
	s.rest(n, kept)
	s.rest(0, nil)
}

// leaderKilled kills the leader after a provider has died. The other worker leads and finds the dead provider.
func leaderKilled(s *stack) {
	kept := s.spread()
	lead := s.leader()
	require.NoError(s.t, s.world.SetKnobs(s.t.Context(), "milan", sim.Knobs{Unreachable: true}))
	s.during(45*time.Second, kept)
	s.workers[lead].Kill()
	s.replaced("milan", 12)
	s.holds(kept)
	s.workers[lead] = s.work(lead, s.world)
	s.healed("milan", kept, 12)
}

// leaderFrozen stops the leader's process for minutes, and continues it. No round runs in this time, and nothing is
// lost because of the gap.
func leaderFrozen(s *stack) {
	s.rest(5, nil)
	kept := s.nodes()
	lead := s.workers[s.leader()]
	require.NoError(s.t, lead.Signal(syscall.SIGSTOP))
	s.during(time.Duration(*minutes)*time.Minute, kept)
	require.NoError(s.t, lead.Signal(syscall.SIGCONT))
	s.during(2*time.Minute, kept)
	s.rest(6, kept)
	s.rest(0, nil)
}

// twoLeaders freezes the leader and takes its lock away, so that the other worker leads, too. A provider dies. The
// first leader then continues with its old evidence.
func twoLeaders(s *stack) {
	kept := s.spread()
	first := s.leader()
	require.NoError(s.t, s.workers[first].Signal(syscall.SIGSTOP))
	require.NoError(s.t, os.Remove(s.world.Path()+".lead"))
	second := 1 - first
	s.workers[second].Kill() // it waits for the lock of the removed file
	s.workers[second] = s.work(second, s.world)
	require.Equal(s.t, second, s.leader())
	s.during(90*time.Second, kept)
	require.NoError(s.t, s.world.SetKnobs(s.t.Context(), "milan", sim.Knobs{Unreachable: true}))
	require.NoError(s.t, s.workers[first].Signal(syscall.SIGCONT))
	s.replaced("milan", 12)
	s.holds(kept)
	s.healed("milan", kept, 12)
}

// leaderEachMinute kills the leader each minute, and starts it again. The dead provider is still found, because each
// leader continues with the saved evidence.
func leaderEachMinute(s *stack) {
	kept := s.spread()
	require.NoError(s.t, s.world.SetKnobs(s.t.Context(), "milan", sim.Knobs{Unreachable: true}))
	began := time.Now()
	lost := time.Duration(0)
	for range max(*minutes, 6) {
		lead := s.leader()
		s.during(time.Minute, kept)
		s.workers[lead].Kill()
		s.workers[lead] = s.work(lead, s.world)
		seen, err := s.ca.Look()
		if err == nil && lost == 0 && len(seen.Running) < 12 {
			lost = time.Since(began)
		}
	}
	require.NotZero(s.t, lost, "no leader found the dead provider")
	fmt.Printf("MEASURED %s first lost %.0f s\n", s.t.Name(), lost.Seconds())
	s.replaced("milan", 12)
	s.healed("milan", kept, 12)
}

// temporalHangs stops Temporal's process for minutes, and continues it. Nothing is lost.
func temporalHangs(s *stack) {
	s.rest(5, nil)
	kept := s.nodes()
	require.NoError(s.t, s.temporal.Signal(syscall.SIGSTOP))
	s.during(time.Duration(*minutes)*time.Minute, kept)
	require.NoError(s.t, s.temporal.Signal(syscall.SIGCONT))
	s.rest(6, kept)
	s.during(time.Minute, kept)
	s.rest(0, nil)
}

// ended waits until a process has ended without a signal of the test.
func (s *stack) ended(p *proc.Process) {
	s.t.Helper()
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		require.Fail(s.t, "the process still runs", proc.Tail(p.Log, 20))
	}
}
