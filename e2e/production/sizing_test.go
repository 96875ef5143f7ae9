package production

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func (s *stack) flags(namespace string) *connect.Flags {
	return &connect.Flags{Address: s.temporal.Address, Namespace: namespace, CA: s.temporal.CAFile,
		Cert: s.temporal.Cert, Key: s.temporal.Key}
}

// sizing measures the load that nodes cause in Temporal and its database.
func (s *stack) sizing(t *testing.T) {
	const nodes = 40
	bytes, commits := s.database(t)
	s.ca.Grown = nil
	began := time.Now()
	for n := 2; n <= nodes; n += 2 { // as CA does for a slowly growing queue of pods
		s.ca.Wanted = n
		s.ca.Until(time.Minute, "booked", s.ca.Loop)
	}
	s.ca.Until(5*time.Minute, "all run", func() error { return errors.Join(s.ca.Loop(), s.whole(nodes)) })
	measure(fmt.Sprintf("%d nodes, two at a time, Ready", nodes), time.Since(began))
	slices.Sort(s.ca.Grown)
	measure("IncreaseSize p50", s.ca.Grown[len(s.ca.Grown)/2])
	measure("IncreaseSize max", s.ca.Grown[len(s.ca.Grown)-1])
	began = time.Now()
	s.empty()
	measure(fmt.Sprintf("%d nodes released", nodes), time.Since(began))
	bytesAfter, commitsAfter := s.database(t)
	fmt.Printf("MEASURED database, a node created and released %.0f KiB\n", float64(bytesAfter-bytes)/nodes/1024)
	fmt.Printf("MEASURED transactions, a node created and released %.0f\n", float64(commitsAfter-commits)/nodes)
	fmt.Printf("MEASURED memory of Temporal %d MiB\n", peak(t, s.temporal.Pid()))
	fmt.Printf("MEASURED memory of a worker %d MiB\n", peak(t, s.workers[1].Pid()))
	fmt.Printf("MEASURED memory of a gRPC server %d MiB\n", peak(t, s.servers[1].Pid()))
}

// database returns the size of Temporal's databases and the number of their committed transactions.
func (s *stack) database(t *testing.T) (bytes, commits int) {
	t.Helper()
	read := func(sql string) int {
		n, err := strconv.Atoi(s.temporal.Postgres.Query(t, "postgres",
			sql+" from pg_stat_database where datname like 'temporal%'"))
		require.NoError(t, err)
		return n
	}
	return read("select sum(pg_database_size(datname))"), read("select sum(xact_commit)")
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak returns the peak memory use of a process, in MiB.
func peak(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	found := highWater.FindSubmatch(status)
	require.NotNil(t, found)
	kib, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return kib / 1024
}
