package zz_lab

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

func TestTimes(t *testing.T) {
	w := newWorld(t)
	b := w.backend(t)
	p := w.provider(1)
	shape := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi"), "pods": resource.MustParse("20")}
	for round := range 3 {
		a := backend.Attempt{Group: "times", Instance: fleet.InstanceName("times", fleet.NewEpoch(time.Now()), round), Number: 1, Provider: p}
		step := func(name string, f func(backend.Progress) error) {
			t.Helper()
			start := time.Now()
			err := f(func(stage backend.Stage, message string) {
				t.Logf("  %6.2f %s: %s", time.Since(start).Seconds(), stage, message)
			})
			t.Logf("STEP %s %.2f s", name, time.Since(start).Seconds())
			require.NoError(t, err)
		}
		step("establish", func(pr backend.Progress) error { return b.Establish(t.Context(), p, pr) })
		step("join", func(pr backend.Progress) error {
			_, err := b.Join(t.Context(), backend.NodeSpec{Attempt: a, Shape: shape}, pr)
			return err
		})
		step("drain", func(pr backend.Progress) error { return b.Drain(t.Context(), a, false, pr) })
		step("leave", func(pr backend.Progress) error { return b.Leave(t.Context(), a, pr) })
		step("unpeer", func(pr backend.Progress) error { return b.Unpeer(t.Context(), p, pr) })
	}
}
