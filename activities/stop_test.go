package activities_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// slowly is a world whose lists return only when their context ends or when they are released.
type slowly struct {
	world
	began chan struct{}
	let   chan struct{}
}

func (s *slowly) List(ctx context.Context, _ backend.Scope) ([]fleet.Found, error) {
	s.began <- struct{}{}
	select {
	case <-s.let:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// awaitCall waits until the activity has called List. An activity that ends without the call fails the test.
func (s *slowly) awaitCall(t *testing.T, end <-chan error) {
	t.Helper()
	select {
	case <-s.began:
	case err := <-end:
		t.Fatalf("it ends before it calls the backend: %v", err)
	case <-time.After(30 * time.Second):
		t.Fatal("it does not ask the backend")
	}
}

// The inspection of objects has a heartbeat timeout like every activity, so it must send heartbeats. Otherwise it
// would time out again and again in a large cluster, and its group or provider would never recover.
func TestListsSendHeartbeats(t *testing.T) {
	for name, call := range map[string]func(*activities.Activities) (any, any){
		"group": func(a *activities.Activities) (any, any) {
			return a.Inspect, activities.Task{Kind: fleet.CommandRecover, Group: "a"}
		},
		"provider": func(a *activities.Activities) (any, any) {
			return a.Inspect, activities.Task{Kind: fleet.CommandRecover, Provider: "milan"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // some cases wait for a second
			b := &slowly{began: make(chan struct{}, 8), let: make(chan struct{})}
			beaten := make(chan struct{}, 1)
			listen := func(env *testsuite.TestActivityEnvironment) {
				env.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) {
					select {
					case beaten <- struct{}{}:
					default:
					}
				})
			}
			end := make(chan error, 1)
			do, arg := call(&activities.Activities{Backend: b, Catalog: offering{}, Entities: running()})
			go func() { end <- ended(t, do, arg, listen) }()
			b.awaitCall(t, end)
			select {
			case <-beaten:
			case <-time.After(30 * time.Second):
				t.Error("no heartbeat")
			}
			close(b.let)
			select {
			case err := <-end:
				require.NoError(t, err)
			case <-time.After(30 * time.Second):
				t.Error("it does not end")
			}
		})
	}
}

// A worker that stops ends its activities, so that another worker continues them immediately and not only after their
// heartbeat timeout. The activities have not failed, so their error must be retryable.
func TestActivitiesEndWithTheirWorker(t *testing.T) {
	at := attempt("a-t0-1")
	peer := fleet.PeeringInput{Provider: at.Provider}
	for name, call := range map[string]func(*activities.Activities) (any, any){
		"Establish": func(a *activities.Activities) (any, any) { return a.Establish, peer },
		"Join": func(a *activities.Activities) (any, any) {
			return a.Join, activities.JoinInput{Node: backend.NodeSpec{Attempt: at}}
		},
		"Drain": func(a *activities.Activities) (any, any) {
			return a.Drain, activities.DrainInput{Attempt: at}
		},
		"Return": func(a *activities.Activities) (any, any) {
			return a.Return, activities.ReturnInput{Attempt: at}
		},
		"RemovePeering": func(a *activities.Activities) (any, any) { return a.RemovePeering, peer },
		"Inspect": func(a *activities.Activities) (any, any) {
			return a.Inspect, activities.Task{Kind: fleet.CommandRecover, Group: "a"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &slowly{began: make(chan struct{}, 8), let: make(chan struct{})}
				b.verb = func(ctx context.Context) error {
					b.began <- struct{}{}
					return hangs(ctx)
				}
				stop := make(chan struct{})
				do, arg := call(&activities.Activities{Backend: b, Catalog: offering{}, Entities: running()})
				end := make(chan error, 1)
				began := time.Now()
				go func() {
					end <- ended(t, do, arg, func(env *testsuite.TestActivityEnvironment) { env.SetWorkerStopChannel(stop) })
				}()
				b.awaitCall(t, end)
				close(stop)
				err := <-end
				var app *temporal.ApplicationError
				require.ErrorAs(t, err, &app)
				require.False(t, app.NonRetryable(), "%v", err)
				require.Zero(t, time.Since(began), "it ends when it is cancelled, not at the end of its pass")
			})
		})
	}
}
