package fleet

import "errors"

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
