package fleet

import (
	"errors"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// Code says why an instance or an attempt failed. The set is small and fixed: CA makes it the value of the Prometheus
// label "reason" of failed_scale_ups_total.
type Code string

// The codes; CodeTable says what each means.
const (
	CodeNoOffer     Code = "NoOffer"
	CodeNoCapacity  Code = "NoCapacity"
	CodeRefused     Code = "Refused"
	CodeUnreachable Code = "Unreachable"
	CodeTimeout     Code = "Timeout"
	CodeCancelled   Code = "Cancelled"
	CodeSpending    Code = "SpendingLimit"
	CodePaused      Code = "Paused"
	CodeNoRoom      Code = "NoRoomForGateway"
	CodeLost        Code = "Lost"
	CodeInternal    Code = "Internal"
)

// ErrorClass is CA's class of a failure. CA shows it in texts, and decides nothing by it.
type ErrorClass string

// The classes.
const (
	OutOfResources ErrorClass = "OutOfResources" // another node group may have what this one lacks
	OtherError     ErrorClass = "Other"
)

// CodeRow is one code: how a failure with it is judged, and what people read about it.
type CodeRow struct {
	Code  Code
	Class ErrorClass
	// Final ends a step that meets the failure: the provider said no, and to try the same again is pointless. A step
	// that meets any other failure is tried again within its budget.
	Final bool
	// Again lets the instance ask the provider again that has refused a hold with the code. Any other code makes the
	// instance ask the provider no more.
	Again bool
	// Blames counts the failure against its provider, in a group that weighs failures.
	Blames bool
	// Rests has a provider rest whose peering failed with the code.
	Rests bool
	// OfStage makes the text that of the stage alone, "waiting for <stage>: ...": how our own wait for it ended explains
	// nothing.
	OfStage bool
	// Means and Remedy are for people: what has happened, and what to do about it. Each is one sentence.
	Means, Remedy string
	// Page is the document, in docs, that says more; empty when there is none.
	Page string
}

// CodeTable has one row for each code. It is data, as Machine is: whoever judges a failure, the documents and the tests
// all read it. A new code needs its constant, its row, and the place that produces it.
var CodeTable = []CodeRow{
	{Code: CodeNoOffer, Class: OutOfResources, Rests: true,
		Means: "No offer fits the node group, or none is left to try.",
		Remedy: "See the reason for each offer in `liqo-autoscaler explain instance NAME`, then correct the selector or " +
			"add a provider."},
	{Code: CodeNoCapacity, Class: OutOfResources, Final: true, Again: true, Rests: true,
		Means:  "The offers are used up, or the providers granted nothing or are cordoned.",
		Remedy: "Check `liqo-autoscaler offers`, then raise `lendable`, lift a cordon, or add a provider."},
	{Code: CodeRefused, Class: OutOfResources, Final: true, Blames: true, Rests: true,
		Means:  "A provider refuses this cluster or the node, or its condition allows nothing new there.",
		Remedy: "Read the condition of each provider in `liqo-autoscaler offers`, and contact its operators.",
		Page:   "operations.md#a-provider-dies-closes-or-refuses-our-credentials"},
	{Code: CodeUnreachable, Class: OtherError, Blames: true, Rests: true,
		Means:  "A provider's API cannot be used: the network is down, or the credentials are not accepted.",
		Remedy: "Read the condition of each provider in `liqo-autoscaler offers`, and contact its operators.",
		Page:   "operations.md#a-provider-dies-closes-or-refuses-our-credentials"},
	{Code: CodeTimeout, Class: OtherError, Blames: true, Rests: true, OfStage: true,
		Means:  "A step used up its budget before it had reached the stage that the message names.",
		Remedy: "Find out why the stage is not reached; the instance goes on to the next provider by itself.",
		Page:   "operations.md#an-instance-does-not-become-ready"},
	{Code: CodeCancelled, Class: OtherError, Rests: true,
		Means:  "An operator cancelled it.",
		Remedy: "Nothing needs to be done: Cluster Autoscaler requests another node if pods still need one."},
	{Code: CodeSpending, Class: OutOfResources, Rests: true,
		Means:  "What has room costs more than the node group's `spending` leaves for a node.",
		Remedy: "Wait, or raise the limit.",
		Page:   "cost.md"},
	{Code: CodePaused, Class: OtherError, Rests: true,
		Means:  "An operator paused the node group before a provider had granted the instance.",
		Remedy: "Run `liqo-autoscaler resume group ID`, unless the node group is meant to stay paused."},
	{Code: CodeNoRoom, Class: OtherError, OfStage: true,
		Means:  "This cluster has no room for its own end of a peering: its gateway, or a virtual kubelet.",
		Remedy: "Reserve room for the pod that the message names, or give it a priority class.",
		Page:   "liqo.md#what-a-peering-is"},
	{Code: CodeLost, Class: OtherError, Rests: true,
		Means: "The node is lost: its objects were deleted, or its provider is gone.",
		Remedy: "Read the condition of the provider in `liqo-autoscaler offers`; if it has none, find out who deletes " +
			"ResourceSlices or VirtualNodes.",
		Page: "operations.md#a-provider-dies-closes-or-refuses-our-credentials"},
	{Code: CodeInternal, Class: OtherError, Rests: true,
		Means:  "The failure is a defect, or an error in Temporal.",
		Remedy: "See the worker's log, and report it."},
}

// Codes lists every code, in the order of the table, for whoever counts failures.
var Codes = codes()

func codes() []Code {
	all := make([]Code, 0, len(CodeTable))
	for _, r := range CodeTable {
		all = append(all, r.Code)
	}
	return all
}

// Row returns the code's row of CodeTable. A code that this version does not know is judged as CodeInternal.
func (c Code) Row() CodeRow {
	for _, r := range CodeTable {
		if r.Code == c {
			return r
		}
	}
	return CodeInternal.Row()
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
	return &Failure{Code: code, Provider: provider, Stage: stage, Message: shorten.Words(message, maxMessage)}
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
