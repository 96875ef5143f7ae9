package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// pollEvery is the interval between two checks of a condition. Each check calls an API server.
const pollEvery = 200 * time.Millisecond

// steps measures the steps of one test and bounds every wait.
type steps struct {
	t    *testing.T
	last time.Time
}

func newSteps(t *testing.T) *steps { return &steps{t: t, last: time.Now()} }

// done records the end of a step. The step began at the end of the previous step.
func (s *steps) done(name string) {
	now := time.Now()
	fmt.Printf("STEP %s/%s %.2f\n", s.t.Name(), name, now.Sub(s.last).Seconds())
	s.last = now
}

// The function `until` polls a condition until it returns nil, and then ends the step. After the bound, the test fails
// with the condition's last error.
func (s *steps) until(ctx context.Context, name string, bound time.Duration, condition func(context.Context) error) {
	s.t.Helper()
	if err := testkit.Poll(ctx, bound, pollEvery, condition); err != nil {
		s.t.Fatalf("step %s: not reached in %s: %v", name, bound, err)
	}
	s.done(name)
}

// The function `during` fails the test unless the condition returns nil throughout this time.
func (s *steps) during(ctx context.Context, name string, span time.Duration, condition func(context.Context) error) {
	s.t.Helper()
	for end := time.Now().Add(span); time.Now().Before(end); {
		if err := condition(ctx); err != nil {
			s.t.Fatalf("step %s: %v", name, err)
		}
		if !wait.For(ctx, pollEvery) {
			s.t.Fatalf("step %s: %v", name, ctx.Err())
		}
	}
	s.done(name)
}
