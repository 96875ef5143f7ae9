package sim

import (
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// BenchmarkNodes joins and returns 200 nodes concurrently, in an empty world and in a world of 1,000 nodes on 50
// providers. It compares the measured times with the simulated delays of Join and Return, and prints lines of the
// form BENCH <name> <value> <unit> <ratio> <against>.
func BenchmarkNodes(b *testing.B) {
	for _, others := range []int{0, 1000} {
		b.Run(fmt.Sprintf("among-%d", others), func(b *testing.B) { benchNodes(b, others) })
	}
}

func benchNodes(b *testing.B, others int) {
	const n, providers = 200, 50
	w, err := Open(filepath.Join(b.TempDir(), "world.json"))
	must(b, err)
	delays := defaultDelays
	must(b, w.SetDelays(b.Context(), Delays{}))
	backend := New(w, Options{})
	peers := make([]fleet.Provider, providers)
	for i := range peers {
		id := fmt.Sprintf("p%d", i)
		peers[i] = fleet.Provider{ID: id, Credentials: fleet.Credentials{SecretRef: &fleet.SecretRef{Name: id}}}
		must(b, w.AddProvider(b.Context(), id, nil))
		must(b, backend.Establish(b.Context(), peers[i], nil))
	}
	spec := func(kind string, i int) backendSpec {
		return nodeSpec(fmt.Sprintf("%s-%d", kind, i), 1, peers[i%providers])
	}
	for i := range others {
		_, err := backend.Join(b.Context(), spec("other", i), nil)
		must(b, err)
	}
	must(b, w.SetDelays(b.Context(), delays))
	all := func(do func(backendSpec) error) time.Duration {
		began := time.Now()
		var group sync.WaitGroup
		for i := range n {
			group.Go(func() { must(b, do(spec("node", i))) })
		}
		group.Wait()
		return time.Since(began)
	}
	for b.Loop() {
		cpu := cpuTime()
		join := all(func(s backendSpec) error { _, err := backend.Join(b.Context(), s, nil); return err })
		leave := all(func(s backendSpec) error { return backend.Return(b.Context(), s.Attempt, nil) })
		cpu = cpuTime() - cpu
		at := fmt.Sprintf("%d-among-%d", n, others)
		print := func(name string, took, base time.Duration, against string) {
			ratio := took.Seconds() / base.Seconds()
			fmt.Printf("BENCH sim-%s-%s %.2f s %.2f %s\n", name, at, took.Seconds(), ratio, against)
		}
		print("join", join, delays.Join, "join-delay")
		print("return", leave, delays.Leave, "leave-delay")
		print("cpu", cpu, join+leave, "wall")
	}
}

type backendSpec = backend.NodeSpec

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Error(err)
	}
}
