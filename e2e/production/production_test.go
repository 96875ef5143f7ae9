package production

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/temporal"
)

// TestProduction runs the suite. Its parts run one after another on one stack, and at the end of each part the
// simulated world contains no object of ours.
func TestProduction(t *testing.T) {
	s := newStack(t)
	part := func(name string, run func(*testing.T)) {
		if !t.Run(name, func(t *testing.T) { s.t, s.ca.T = t, t; run(t) }) {
			t.FailNow()
		}
		s.t, s.ca.T = t, t
	}
	part("connection", s.connection)
	part("first node", s.firstNode)
	part("a gRPC server is killed", func(*testing.T) { s.killed(s.servers[0].Kill, func() { s.servers[0].start(s.t) }) })
	part("a worker is killed", func(*testing.T) { s.killed(s.workers[0].Kill, func() { s.workers[0].start(s.t) }) })
	part("Temporal is killed", func(*testing.T) { s.killed(s.temporal.Kill, func() { s.temporal.Start(s.t) }) })
	part("PostgreSQL is killed", func(*testing.T) {
		s.killed(s.temporal.Postgres.Kill, func() { s.temporal.Postgres.Start(s.t); s.temporal.Start(s.t) })
	})
	part("a backup is restored", s.restored)
	part("sizing", s.sizing)
	for _, m := range s.ours() {
		select {
		case <-m.Done():
			require.Fail(t, "it ended without a signal", m.Name)
		default:
		}
	}
}

// firstNode creates a node and removes it again, and checks the state that CA and an operator see. The operator's
// commands find Temporal by the environment.
func (s *stack) firstNode(t *testing.T) {
	began := time.Now()
	s.ca.Wanted = 1
	s.ca.Until(time.Minute, "the node is booked", s.ca.Loop)
	measure("IncreaseSize, the first", s.ca.Grown[0])
	s.ca.Until(2*time.Minute, "the node is Ready", func() error { return s.whole(1) })
	measure("first node Ready", time.Since(began))
	out, code := s.cli(t, s.env, "status")
	require.Zero(t, code, "%s", out)
	ready := regexp.MustCompile(`(std-\w+-1) +std +Ready `).FindSubmatch(out)
	require.NotNil(t, ready, "%s", out)
	for _, command := range []string{"report", "explain instance " + string(ready[1]), "pause group std",
		"resume group std"} {
		out, code := s.cli(t, s.env, strings.Fields(command)...)
		require.Zero(t, code, "%s: %s", command, out)
	}
	for _, command := range []string{"offers", "doctor --no-cluster", "cordon provider milan", "uncordon provider milan"} {
		out, code := s.cli(t, s.env, append(strings.Fields(command), s.published()...)...)
		require.Zero(t, code, "%s: %s", command, out)
	}
	began = time.Now()
	s.empty()
	measure("first node released, with its peering", time.Since(began))
	out, code = s.cli(t, s.env, "demo", "--address", s.servers[0].address, "--group", "std", "--world", s.world.Path())
	require.Zero(t, code, "%s", out)
}

// outage is the time for which killed processes stay down.
const outage = 3 * time.Second

// killed kills processes in the middle of a scale-out. In the meantime CA continues its loops and wants more nodes.
func (s *stack) killed(kill, start func()) {
	s.t.Helper()
	s.ca.Wanted = 4
	s.ca.Until(time.Minute, "four nodes are booked", s.ca.Loop)
	booked, err := s.ca.Look()
	require.NoError(s.t, err)
	require.Len(s.t, booked.Listed, 4)
	s.ca.Until(time.Minute, "nodes are being made", func() error {
		w, err := s.world.Snapshot()
		if err == nil && w.Counts().Slices == 0 {
			err = errors.New("no slice yet")
		}
		return err
	})
	w, err := s.world.Snapshot()
	require.NoError(s.t, err)
	require.Less(s.t, w.Counts().Stamped, 4, "too late to be in the middle")

	began := time.Now()
	kill()
	s.ca.Wanted = 6
	unanswered, answered, back := 0, time.Duration(0), false
	s.ca.Until(4*time.Minute, "six nodes run", func() error {
		if !back && time.Since(began) > outage {
			start()
			back = true
		}
		s.temporal.Revive(s.t)
		err := s.ca.Loop()
		switch {
		case err != nil:
			unanswered++
		case answered == 0:
			answered = time.Since(began)
		}
		if err != nil {
			return err
		}
		return s.whole(6)
	})
	measure(s.t.Name()+": CA answered again after", answered)
	measure(s.t.Name()+": all six Ready after", time.Since(began))
	fmt.Printf("MEASURED %s: CA loops that failed %d\n", s.t.Name(), unanswered)
	seen, err := s.ca.Look()
	require.NoError(s.t, err)
	for _, id := range booked.Listed {
		require.True(s.t, slices.Contains(seen.Listed, id), "%s was booked and is lost: %v", id, seen.Listed)
	}
	s.sevenIsTooMany(seen.Listed)
	s.empty()
}

// sevenIsTooMany requires that the numbers in the ids of the six running instances have no gap. A gap would mean that
// another instance was booked between them.
func (s *stack) sevenIsTooMany(ids []string) {
	s.t.Helper()
	var numbers []int
	for _, id := range ids {
		n, err := strconv.Atoi(id[strings.LastIndex(id, "-")+1:])
		require.NoError(s.t, err)
		numbers = append(numbers, n)
	}
	require.Len(s.t, numbers, 6)
	require.Equal(s.t, 5, slices.Max(numbers)-slices.Min(numbers), "%v", ids)
}

// restored loads a backup that lacks half of the nodes. The group finds the missing nodes, and CA does not request
// these nodes again.
func (s *stack) restored(t *testing.T) {
	s.ca.Wanted = 2
	s.ca.Until(2*time.Minute, "two nodes run", func() error { return errors.Join(s.ca.Loop(), s.whole(2)) })
	pg := s.temporal.Postgres
	began := time.Now()
	for _, db := range []string{temporal.Main, temporal.Visibility} {
		pg.Run(t, "pg_dump", append(pg.Client(), "--format", "custom", "--file", pg.Dir+"/"+db+".dump", db)...)
	}
	measure("backup", time.Since(began))
	s.ca.Wanted = 4
	s.ca.Until(2*time.Minute, "four nodes run", func() error { return errors.Join(s.ca.Loop(), s.whole(4)) })
	before, err := s.ca.Look()
	require.NoError(t, err)

	s.temporal.Kill()
	began = time.Now()
	for _, db := range []string{temporal.Main, temporal.Visibility} {
		pg.Run(t, "dropdb", append(pg.Client(), "--force", db)...)
		pg.CreateDatabase(t, db)
		pg.Run(t, "pg_restore", append(pg.Client(), "--dbname", db, pg.Dir+"/"+db+".dump")...)
	}
	s.temporal.Start(t)
	measure("restore", time.Since(began))
	s.ca.Until(8*time.Minute, "all four are known again", func() error { return s.whole(4) })
	measure("all known again after", time.Since(began))
	after, err := s.ca.Look()
	require.NoError(t, err)
	require.ElementsMatch(t, before.Listed, after.Listed)
	s.empty()
}
