package grpcserver

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// toStatus converts every error of the interface Groups into an error for CA. CA treats all codes in the same way.
// The codes are for people, alerts and tests. verb and group describe the failed call.
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
		return codes.FailedPrecondition // a kind of a newer worker; a refusal never changes anything
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	default:
		return codes.Internal
	}
}

// refusalCodes maps the kinds of refusals to the codes for CA.
var refusalCodes = map[fleet.RefusalKind]codes.Code{
	fleet.RefusedInvalid:        codes.InvalidArgument,
	fleet.RefusedMax:            codes.OutOfRange,
	fleet.RefusedSpending:       codes.ResourceExhausted,
	fleet.RefusedPrecondition:   codes.FailedPrecondition,
	fleet.RefusedExpired:        codes.DeadlineExceeded,
	fleet.RefusedNotInitialised: codes.Unavailable,
	fleet.RefusedOtherCluster:   codes.FailedPrecondition,
}

// nothingChanged reports whether err, the error of a mutation, proves that the mutation has changed nothing. After
// any other error the mutation may have been booked.
func nothingChanged(err error) bool {
	if errors.Is(err, fleet.ErrOutcomeUnknown) {
		return false
	}
	var refusal *fleet.Refusal
	return errors.As(err, &refusal) || errors.Is(err, fleet.ErrUnavailable)
}
