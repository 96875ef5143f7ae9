package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// These constants determine how many requests to Temporal a worker waits for concurrently.
const (
	// near is the number for a Temporal next to the worker.
	near = 4
	// A round trip of this length doubles the number. Next to Temporal, a slot is occupied for about 40 ms by a workflow
	// task (150 scale-outs with four tasks each take 6.3 s in four slots); far from Temporal, the task also waits for one
	// or two round trips. So the number of tasks a second should not depend on the distance.
	doubles = 25 * time.Millisecond
	// farthest bounds the number.
	farthest = 64
	// roundTrips is the number of measured round trips, and roundTripBound the longest time of one.
	roundTrips     = 5
	roundTripBound = 2 * time.Second
)

// atDistance returns the number of requests to Temporal that a worker waits for concurrently, with this round trip.
func atDistance(roundTrip time.Duration) int {
	return min(int(near*(1+roundTrip.Seconds()/doubles.Seconds())), farthest)
}

// driverSlots returns the number of driver slots for the present distance to Temporal, and logs it. It waits until
// Temporal answers, or until ctx ends.
func driverSlots(ctx context.Context, t client.Client, logger *slog.Logger) (int, error) {
	var roundTrip time.Duration
	err := try(ctx, logger, func() (err error) {
		roundTrip, err = measureRoundTrip(ctx, requestVersion(t))
		return err
	})
	if err != nil {
		return 0, err
	}
	slots := atDistance(roundTrip)
	logger.Info("distance to Temporal", "roundTrip", roundTrip.Round(time.Millisecond/10), "driverSlots", slots)
	return slots, nil
}

// measureRoundTrip returns the shortest of several round trips to Temporal. A longer one also includes the wait on a
// busy machine. The function request sends a request for which Temporal does not need its database. If one of the
// requests fails, measureRoundTrip returns the error. It blocks for at most ten seconds.
func measureRoundTrip(ctx context.Context, request func(context.Context) error) (shortest time.Duration, err error) {
	for n := range roundTrips {
		bounded, cancel := context.WithTimeout(ctx, roundTripBound)
		began := time.Now()
		err := request(bounded)
		took := time.Since(began)
		cancel()
		if err != nil {
			return 0, fmt.Errorf("measure the round trip to Temporal: %w", err)
		}
		if n == 0 || took < shortest {
			shortest = took
		}
	}
	return shortest, nil
}

// requestVersion returns a function that requests the server's version from Temporal.
func requestVersion(t client.Client) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := t.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
		return err
	}
}
