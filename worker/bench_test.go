package worker_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// BenchmarkBooking measures the durations of an IncreaseSize and a DeleteNodes. Each is one update of a running
// group. The benchmark compares them with a plain read of the same workflow, and prints BENCH <name> <value> <unit>
// <ratio> <against>.
func BenchmarkBooking(b *testing.B) {
	s := newScene(b, 0, func(g *fleet.GroupSpec) { g.Max = 1000 })
	s.ctx = context.Background()
	s.work()
	var grow, release, read []time.Duration
	timed := func(into *[]time.Duration, call func() error) {
		began := time.Now()
		if err := call(); err != nil {
			b.Fatal(err)
		}
		*into = append(*into, time.Since(began))
	}
	for b.Loop() {
		timed(&grow, func() error { _, err := s.groups.Grow(s.ctx, s.spec.ID, 1, 0, fleet.Position{}); return err })
		booked := s.snapshot().Instances
		name := booked[len(booked)-1].Name
		timed(&release, func() error {
			_, err := s.groups.Release(s.ctx, s.spec.ID, []string{name}, fleet.Position{})
			return err
		})
		timed(&read, func() error { _, err := s.groups.Snapshot(s.ctx, s.spec.ID); return err })
	}
	base := quantile(read, 50)
	for _, r := range []struct {
		name string
		of   []time.Duration
	}{{"grow", grow}, {"release", release}, {"snapshot", read}} {
		for _, q := range []int{50, 99} {
			v := quantile(r.of, q)
			fmt.Printf("BENCH %s-p%d %.2f ms %.2f snapshot-p50\n", r.name, q, v.Seconds()*1000, v.Seconds()/base.Seconds())
		}
	}
}

func quantile(of []time.Duration, q int) time.Duration {
	slices.Sort(of)
	return of[(len(of)-1)*q/100]
}
