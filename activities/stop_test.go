package activities_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// slow is a backend whose every verb takes until it is let go or its context ends.
type slow struct {
	backend.Backend
	began chan struct{}
	let   chan struct{}
}

func newSlow() *slow { return &slow{began: make(chan struct{}, 8), let: make(chan struct{})} }

func (s *slow) wait(ctx context.Context) error {
	s.began <- struct{}{}
	select {
	case <-s.let:
		return nil
	case <-ctx.Done():
		return &backend.StageError{Stage: backend.StageSliceAuth, Message: "not yet", Err: context.Cause(ctx)}
	}
}

func (s *slow) List(ctx context.Context, _ string) ([]backend.Found, error) { return nil, s.wait(ctx) }

func (s *slow) Peers(ctx context.Context) ([]backend.Provider, error) { return nil, s.wait(ctx) }

func (s *slow) Join(ctx context.Context, _ backend.NodeSpec, _ backend.Progress) (backend.Node, error) {
	return backend.Node{}, s.wait(ctx)
}

func (s *slow) Drain(ctx context.Context, _ backend.Attempt, _ bool, _ backend.Progress) error {
	return s.wait(ctx)
}

func (s *slow) Leave(ctx context.Context, _ backend.Attempt, _ backend.Progress) error {
	return s.wait(ctx)
}

// Looking at what exists has a heartbeat timeout like everything else, so it must heartbeat: in a large cluster it would
// otherwise time out again and again, and its group or provider never recover.
func TestRecoveryHeartbeats(t *testing.T) {
	for name, call := range map[string]func(*activities.Activities) (any, any){
		"group":    func(a *activities.Activities) (any, any) { return a.RecoverGroup, "standard" },
		"provider": func(a *activities.Activities) (any, any) { return a.RecoverProvider, "milan" },
	} {
		t.Run(name, func(t *testing.T) {
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestActivityEnvironment()
			b := newSlow()
			a := &activities.Activities{Backend: b, Catalog: offering{}, Holds: &holding{}}
			beats := make(chan struct{}, 1)
			env.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) {
				select {
				case beats <- struct{}{}:
				default:
				}
			})
			do, arg := call(a)
			env.RegisterActivity(do)
			ended := make(chan error, 1)
			go func() { _, err := env.ExecuteActivity(do, arg); ended <- err }()
			<-b.began
			select {
			case <-beats:
			case <-time.After(30 * time.Second):
				t.Error("no heartbeat")
			}
			close(b.let)
			require.NoError(t, <-ended)
		})
	}
}

// A worker that is told to stop lets its activities end, so that another takes them over at once and not after their
// heartbeat timeout. Nothing has failed then: the error must leave the retry to Temporal.
func TestActivitiesEndWithTheirWorker(t *testing.T) {
	at := backend.Attempt{Group: "standard", Instance: "standard-x-1", Number: 1}
	for name, call := range map[string]func(*activities.Activities) (any, any){
		"WaitForVirtualNode": func(a *activities.Activities) (any, any) { return a.WaitForVirtualNode, backend.NodeSpec{Attempt: at} },
		"Drain":              func(a *activities.Activities) (any, any) { return a.Drain, activities.DrainInput{Attempt: at} },
		"Unpeer":             func(a *activities.Activities) (any, any) { return a.Unpeer, activities.UnpeerInput{Attempt: at} },
	} {
		t.Run(name, func(t *testing.T) {
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestActivityEnvironment()
			b := newSlow()
			stop := make(chan struct{})
			env.SetWorkerStopChannel(stop)
			do, arg := call(&activities.Activities{Backend: b, Catalog: offering{}})
			env.RegisterActivity(do)
			ended := make(chan error, 1)
			go func() { _, err := env.ExecuteActivity(do, arg); ended <- err }()
			<-b.began
			close(stop)
			select {
			case err := <-ended:
				var app *temporal.ApplicationError
				require.True(t, errors.As(err, &app), "%v", err)
				require.False(t, app.NonRetryable(), "%v", err)
			case <-time.After(30 * time.Second):
				close(b.let)
				<-ended
				t.Error("it goes on although its worker stops")
			}
		})
	}
}
