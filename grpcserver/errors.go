package grpcserver

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// toStatus is the one place where an error of the port becomes one that CA reads. CA treats all codes alike (backoff,
// or the loop ends); they are for people, alerts and tests. verb and group say what was tried.
func toStatus(verb, group string, err error) error {
	if err == nil {
		return nil
	}
	return status.Error(codeOf(err), fmt.Sprintf("%s node group %s: %v", verb, group, err))
}

func codeOf(err error) codes.Code {
	var refusal *fleet.Refusal
	switch {
	case errors.Is(err, fleet.ErrOutcomeUnknown), errors.Is(err, fleet.ErrUnavailable):
		return codes.Unavailable
	case errors.As(err, &refusal):
		if code, known := refusalCodes[refusal.Kind]; known {
			return code
		}
		return codes.FailedPrecondition // a kind from a newer worker: still a no that changed nothing
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	default:
		return codes.Internal
	}
}

// refusalCodes are what CA is told of refusals.
var refusalCodes = map[fleet.RefusalKind]codes.Code{
	fleet.RefusedInvalid:        codes.InvalidArgument,
	fleet.RefusedMax:            codes.OutOfRange,
	fleet.RefusedSpending:       codes.ResourceExhausted,
	fleet.RefusedPrecondition:   codes.FailedPrecondition,
	fleet.RefusedExpired:        codes.DeadlineExceeded,
	fleet.RefusedNotInitialised: codes.Unavailable,
}

// nothingChanged reports whether a mutation that failed with err is known to have changed nothing. After any other
// error it may have been booked.
func nothingChanged(err error) bool {
	if errors.Is(err, fleet.ErrOutcomeUnknown) {
		return false
	}
	var refusal *fleet.Refusal
	return errors.As(err, &refusal) || errors.Is(err, fleet.ErrUnavailable)
}
