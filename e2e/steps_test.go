package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// steps times the steps of one test and bounds every wait.
type steps struct {
	t    *testing.T
	last time.Time
}

func newSteps(t *testing.T) *steps { return &steps{t: t, last: time.Now()} }

// done says that a step ended now; it began when the one before ended.
func (s *steps) done(name string) {
	now := time.Now()
	fmt.Printf("STEP %s/%s %.2f\n", s.t.Name(), name, now.Sub(s.last).Seconds())
	s.last = now
}

// until polls a condition until it returns nil and ends the step; past the bound the test ends with the condition's last word.
func (s *steps) until(ctx context.Context, name string, bound time.Duration, condition func(context.Context) error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := condition(ctx)
		if err == nil {
			s.done(name)
			return
		}
		if ctx.Err() == nil || last == nil {
			last = err // not the end of the time itself
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("step %s: not reached in %s: %v", name, bound, last)
		case <-tick.C:
		}
	}
}

// during fails the test if the condition ends within the time: it must return nil all along.
func (s *steps) during(ctx context.Context, name string, span time.Duration, condition func(context.Context) error) {
	s.t.Helper()
	end := time.NewTimer(span)
	defer end.Stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := condition(ctx); err != nil {
			s.t.Fatalf("step %s: %v", name, err)
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("step %s: %v", name, ctx.Err())
		case <-end.C:
			s.done(name)
			return
		case <-tick.C:
		}
	}
}
