package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// scaleOut runs a scale-out to its end and returns its last view. Select and Join return the given results.
func scaleOut(t *testing.T, choose func(activities.SelectInput) activities.SelectOutput,
	join func(activities.JoinInput) error) (last fleet.View) {
	t.Helper()
	for _, in := range told(t, func(in activities.SelectInput) (activities.SelectOutput, error) { return choose(in), nil },
		join) {
		if in.View != nil {
			last = *in.View
		}
	}
	return last
}

// message is a signal to the scale-out under test. Its delay counts from the start of the scale-out.
type message struct {
	after time.Duration
	name  string
	what  any
}

const underTest = "standard-e-1"

// granted returns the grant of the first provider for an attempt. While an activity runs, the test clock runs at the
// speed of the real clock. The delay leaves a slow machine enough time to choose a provider before the grant.
func granted(attempt int) message {
	return message{time.Duration(attempt) * 5 * time.Minute, workflows.SignalAnswer,
		fleet.Answer{Key: fleet.ObjectName(underTest, attempt), State: fleet.HoldGranted, Provider: "milan"}}
}

// told runs a scale-out to its end and returns all its reports. Unless the test passes messages, the first attempt is
// granted.
func told(t *testing.T, choose func(activities.SelectInput) (activities.SelectOutput, error),
	join func(activities.JoinInput) error, messages ...message) []activities.ReportInput {
	t.Helper()
	all, err := ended(t, choose, join, messages...)
	require.NoError(t, err)
	return all
}

// ended runs a scale-out to its end and returns its reports and its error.
func ended(t *testing.T, choose func(activities.SelectInput) (activities.SelectOutput, error),
	join func(activities.JoinInput) error, messages ...message) (all []activities.ReportInput, err error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(5 * time.Minute)
	env.SetWorkerOptions(sdkworker.Options{DeadlockDetectionTimeout: time.Minute})
	var mu sync.Mutex
	for name, stub := range map[string]any{
		activities.NameDiscover: func(context.Context, activities.DiscoverInput) (activities.DiscoverOutput, error) {
			return activities.DiscoverOutput{}, nil
		},
		activities.NameSelect: func(_ context.Context, in activities.SelectInput) (activities.SelectOutput, error) {
			mu.Lock()
			defer mu.Unlock()
			return choose(in)
		},
		activities.NameJoin: func(_ context.Context, in activities.JoinInput) error {
			mu.Lock()
			defer mu.Unlock()
			return join(in)
		},
		activities.NameReport: func(_ context.Context, in activities.ReportInput) error {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, in)
			return nil
		},
	} {
		env.RegisterActivityWithOptions(stub, activity.RegisterOptions{Name: name})
	}
	spec := fleet.InstanceSpec{ID: "standard"}
	instance := fleet.NewInstance(underTest, &spec, env.Now())
	if messages == nil {
		messages = []message{granted(1)}
	}
	for _, m := range messages {
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(m.name, m.what) }, m.after)
	}
	env.ExecuteWorkflow(workflows.ScaleOut, fleet.DriverInput{Instance: instance, Spec: spec})
	require.True(t, env.IsWorkflowCompleted())
	mu.Lock()
	defer mu.Unlock()
	return all, env.GetWorkflowError()
}

var milan = activities.SelectOutput{Offer: &fleet.Offer{Name: "milan", Provider: "milan", Class: "gold"}}

// A request to a provider names the class of the offer. When the class has no free capacity and no other provider has
// an offer, the instance fails with this reason.
func TestFullClassFailsTheInstance(t *testing.T) {
	var asked string
	last := scaleOut(t, func(in activities.SelectInput) activities.SelectOutput {
		if len(in.Refused) > 0 {
			return activities.SelectOutput{Failure: fleet.NewFailure(fleet.CodeNoOffer, "", "", "nobody else")}
		}
		return milan
	}, func(in activities.JoinInput) error {
		asked = fmt.Sprint(in.Node.Attempt.Provider.ID, " ", in.Node.Class)
		f := fleet.NewFailure(fleet.CodeNoCapacity, "milan", "resources", "cpu 1 of 2")
		return temporal.NewNonRetryableApplicationError(f.Message, string(f.Code), nil, f)
	})
	require.Equal(t, "milan gold", asked)
	require.Equal(t, fleet.Failed, last.Phase)
	require.Equal(t, fleet.CodeNoCapacity, last.Failure.Code)
	require.Equal(t, "cpu 1 of 2; then nobody else", last.Failure.Message)
	require.Len(t, last.Abandoned, 1, "what the attempt made is to be undone")
}

// An offer that is full now may have free capacity soon, so the instance waits and does not fail.
func TestScaleOutWaitsForRoom(t *testing.T) {
	looks, joined := 0, false
	scaleOut(t, func(activities.SelectInput) activities.SelectOutput {
		if looks++; looks < 3 {
			return activities.SelectOutput{Failure: fleet.NewFailure(fleet.CodeNoCapacity, "", "", "milan is full"),
				Decision: choice.Decision{Full: true}}
		}
		return milan
	}, func(activities.JoinInput) error {
		joined = true
		return nil
	})
	require.Equal(t, 3, looks)
	require.True(t, joined)
}

func always(activities.SelectInput) (activities.SelectOutput, error) { return milan, nil }

// noRoom returns a provider's refusal for lack of capacity.
func noRoom() error {
	f := fleet.NewFailure(fleet.CodeNoCapacity, "milan", "resources", "cpu 1 of 2")
	return temporal.NewNonRetryableApplicationError(f.Message, string(f.Code), nil, f)
}

// When Select returns an error, the instance fails with the error's code.
func TestFailedSelectFailsTheInstance(t *testing.T) {
	f := fleet.NewFailure(fleet.CodeInternal, "", "", "the selector cannot be read")
	all := told(t, func(activities.SelectInput) (activities.SelectOutput, error) {
		return activities.SelectOutput{}, temporal.NewNonRetryableApplicationError(f.Message, string(f.Code), nil, *f)
	}, func(activities.JoinInput) error { return nil })
	last := all[len(all)-1].View
	require.Equal(t, fleet.Failed, last.Phase)
	require.Equal(t, "the selector cannot be read", last.Failure.Message)
}

// Temporal does not answer for 25 seconds, which is longer than one attempt to choose may take. The choice is tried
// again until it succeeds.
func TestSlowChoiceIsTriedAgain(t *testing.T) {
	tries, joined := 0, false
	told(t, func(activities.SelectInput) (activities.SelectOutput, error) {
		if tries++; tries <= 7 { // seven pauses, the first of 0.2 s and each twice as long as the one before: 25 s
			return activities.SelectOutput{}, errors.New("Temporal does not answer")
		}
		return milan, nil
	}, func(activities.JoinInput) error { joined = true; return nil })
	require.Equal(t, 8, tries)
	require.True(t, joined)
}

// When the offers cannot be read, the instance fails at its deadline, with that reason.
func TestUnreadableOffersFailTheInstanceAtItsDeadline(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(5 * time.Minute)
	var last fleet.View
	env.RegisterActivityWithOptions(func(context.Context, activities.DiscoverInput) (activities.DiscoverOutput, error) {
		return activities.DiscoverOutput{}, nil
	}, activity.RegisterOptions{Name: activities.NameDiscover})
	env.RegisterActivityWithOptions(func(_ context.Context, in activities.ReportInput) error {
		last = *in.View
		return nil
	}, activity.RegisterOptions{Name: activities.NameReport})
	f := fleet.NewFailure(fleet.CodeInternal, "", "", "list offers: the file is gone")
	fails := temporal.NewApplicationError(f.Message, string(f.Code), f)
	tries := env.OnActivity(activities.NameDiscover, mock.Anything, mock.Anything)
	tries.Return(activities.DiscoverOutput{}, fails)
	spec, began := fleet.InstanceSpec{ID: "standard"}, env.Now()
	env.ExecuteWorkflow(workflows.ScaleOut, fleet.DriverInput{Instance: fleet.NewInstance(underTest, &spec, began),
		Spec: spec})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, fleet.Failed, last.Phase)
	require.Contains(t, last.Failure.Message, "the file is gone")
	require.WithinDuration(t, began.Add(spec.Budgets.WithDefaults().Total.Duration), env.Now(), time.Minute)
}

// A grant arrives for an attempt that has ended. The scale-out releases it at the provider that granted it.
func TestGrantOfAnEarlierAttemptIsReleased(t *testing.T) {
	late := granted(1)
	late.after = granted(2).after - time.Second
	joins := 0
	all := told(t, always, func(activities.JoinInput) error {
		if joins++; joins == 1 {
			return noRoom()
		}
		return nil
	}, granted(1), late, granted(2))
	require.Equal(t, 2, joins)
	require.Contains(t, all, activities.ReportInput{Group: "standard", Provider: "milan",
		Holds: []fleet.HoldRequest{{Kind: fleet.HoldRelease, Key: fleet.ObjectName(underTest, 1)}}})
}

// When a provider has not answered, the group orders the scale-out to send the request again.
func TestUnansweredRequestIsRepeated(t *testing.T) {
	again := message{granted(1).after - time.Second, workflows.SignalOrder, fleet.Order{Resend: 1, Attempt: 1}}
	all := told(t, always, func(activities.JoinInput) error { return nil }, again, granted(1))
	require.Len(t, all, 1)
	require.Equal(t, "milan", all[0].Provider)
	require.Len(t, all[0].Holds, 1)
	require.Equal(t, fleet.HoldAcquire, all[0].Holds[0].Kind)
	require.Equal(t, fleet.ObjectName(underTest, 1), all[0].Holds[0].Key)
}

// When a group stops a scale-out, the scale-out's workflow closes as Failed. Only then can its workflow id be used
// again.
func TestStoppedScaleOutFails(t *testing.T) {
	stop := message{granted(1).after - time.Second, workflows.SignalOrder, fleet.Order{Stop: true}}
	_, err := ended(t, always, func(activities.JoinInput) error { return nil }, stop)
	var stopped *temporal.ApplicationError
	require.ErrorAs(t, err, &stopped)
	require.Equal(t, "Stopped", stopped.Type())
	require.True(t, stopped.NonRetryable())
}
