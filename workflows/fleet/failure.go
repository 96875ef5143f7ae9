package fleet

import (
	"errors"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// Code says why an instance or an attempt failed. The set is small and fixed: CA makes it the value of the Prometheus
// label "reason" of failed_scale_ups_total.
type Code string

// The codes.
const (
	CodeNoOffer     Code = "NoOffer"       // no offer fits the shape and selector, or none is left
	CodeNoCapacity  Code = "NoCapacity"    // the provider's offer is used up
	CodeRefused     Code = "Refused"       // the provider said no
	CodeUnreachable Code = "Unreachable"   // the provider's API cannot be used: network, credentials
	CodeTimeout     Code = "Timeout"       // a stage was not reached in its budget
	CodeCancelled   Code = "Cancelled"     // an operator cancelled it
	CodeSpending    Code = "SpendingLimit" // what would fit costs more than the group may spend
	CodePaused      Code = "Paused"        // an operator paused the group before a provider had granted it
	// CodeNoRoom: this cluster has no room for its own end of the peering; no provider is to blame.
	CodeNoRoom   Code = "NoRoomForGateway"
	CodeLost     Code = "Lost"     // the node's objects vanished under us
	CodeInternal Code = "Internal" // a defect or a fault of our own machinery
)

// Codes lists every code, in the order of their constants, for whoever counts failures.
var Codes = []Code{
	CodeNoOffer, CodeNoCapacity, CodeRefused, CodeUnreachable, CodeTimeout, CodeCancelled, CodeSpending, CodePaused,
	CodeNoRoom, CodeLost, CodeInternal,
}

// OutOfResources tells whether CA should file the code under its error class OutOfResources.
func (c Code) OutOfResources() bool {
	return c == CodeNoOffer || c == CodeNoCapacity || c == CodeRefused || c == CodeSpending
}

// Failure is a code with the sentence for people: what was wrong, where, what to do. At most 500 characters are kept.
type Failure struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// Stage is the first stage that was not reached, in the backend's words; empty when no stage is to blame.
	Stage string `json:"stage,omitempty"`
	// Provider is the provider the failure belongs to, if any.
	Provider string `json:"provider,omitempty"`
}

const maxMessage = 500

// NewFailure makes a Failure, cutting the message at 500 characters, which is what CA shows.
func NewFailure(code Code, provider, stage, message string) *Failure {
	return &Failure{Code: code, Provider: provider, Stage: stage, Message: shorten.To(message, maxMessage)}
}

// ErrOutcomeUnknown means that an operation may or may not have been booked: its answer was lost. Read the group again
// before serving it.
var ErrOutcomeUnknown = errors.New("outcome unknown")

// ErrUnavailable means that consistent data cannot be had now: the entity does not run, has not recovered, or Temporal
// does not answer. Nothing was changed.
var ErrUnavailable = errors.New("unavailable")

// ErrTemporal means that Temporal does not answer. It comes together with ErrUnavailable.
var ErrTemporal = errors.New("Temporal does not answer")

// ErrNotRunning means that the entity does not run, or no longer. It comes together with ErrUnavailable.
var ErrNotRunning = errors.New("does not run")

// RefusalKind says what kind of no an operation got. It is the type of the Temporal application error that carries it.
type RefusalKind string

// The refusals.
const (
	RefusedInvalid        RefusalKind = "Invalid"        // the arguments are wrong: delta, id of another group
	RefusedMax            RefusalKind = "MaxSize"        // target + delta would pass max; the group is paused
	RefusedSpending       RefusalKind = "Spending"       // the group may not spend more, see Spending
	RefusedPrecondition   RefusalKind = "Precondition"   // nothing can be cancelled
	RefusedExpired        RefusalKind = "Expired"        // the caller has given up before the operation ran
	RefusedNotInitialised RefusalKind = "NotInitialised" // the entity has not recovered yet, or has no spec yet
)

// Refusal is an operation that changed nothing, and why.
type Refusal struct {
	Kind    RefusalKind `json:"kind"`
	Message string      `json:"message"`
}

func (r *Refusal) Error() string { return r.Message }

// Refuse makes a Refusal.
func Refuse(kind RefusalKind, message string) *Refusal { return &Refusal{Kind: kind, Message: message} }

// IsRefused tells whether err is, or wraps, a Refusal of that kind.
func IsRefused(err error, kind RefusalKind) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Kind == kind
}
