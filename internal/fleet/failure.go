package fleet

import (
	"errors"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// Code names the reason for which an instance or an attempt failed. The set of codes is small and fixed, because CA
// uses a code as the value of the Prometheus label "reason" of failed_scale_ups_total.
type Code string

// These are the codes. CodeTable explains each.
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

// ErrorClass is the class of a failure in CA's interface. CA shows the class in texts, and bases no decision on it.
type ErrorClass string

// These are the classes.
const (
	OutOfResources ErrorClass = "OutOfResources" // another node group may have the resources that this one lacks
	OtherError     ErrorClass = "Other"
)

// CodeRow describes one code: how a failure with it is handled, and its texts for people.
type CodeRow struct {
	Code  Code
	Class ErrorClass
	// Final reports that a failure with the code ends the step, because the provider refused and the same request
	// would fail again. After any other failure the step is tried again within its budget.
	Final bool
	// Again reports that the instance may request a hold again from a provider that refused a hold with this code. After
	// any other code the instance sends that provider no more requests.
	Again bool
	// Blames counts the failure against its provider, in a group whose selection weighs failures.
	Blames bool
	// Rests reports that a provider gets a pause without new peerings after a peering has failed with the code.
	Rests bool
	// OfStage replaces the failure's text by "waiting for <stage>: ...". For such a code the error that ended the wait
	// explains nothing.
	OfStage bool
	// Means and Remedy are texts for people: the meaning of the code, and the action to take. Each is one sentence.
	Means, Remedy string
	// Page names the page in docs that explains the code further; empty if no page does.
	Page string
}

// CodeTable has one row for each code. It is data, as Machine is: the code that handles failures, the documents and
// the tests all read it. A new code needs a constant, a row here, a row in the table of failure_test.go, and a
// function that produces the code. For errors of backends, this function is in activities/errors.go.
var CodeTable = []CodeRow{
	{Code: CodeNoOffer, Class: OutOfResources, Rests: true,
		Means: "No offer fits the node group, or the instance has tried every offer that fits.",
		Remedy: "See the reason for each offer in `liqo-autoscaler explain instance NAME`, then correct the selector or " +
			"add a provider."},
	{Code: CodeNoCapacity, Class: OutOfResources, Final: true, Again: true, Rests: true,
		Means:  "The offers are used up, or the providers granted nothing or are cordoned.",
		Remedy: "Check `liqo-autoscaler offers`, then raise `lendable`, lift a cordon, or add a provider."},
	{Code: CodeRefused, Class: OutOfResources, Final: true, Blames: true, Rests: true,
		Means:  "A provider refuses this cluster or the node, or has a condition with which it gets no new nodes.",
		Remedy: "Read the condition of each provider in `liqo-autoscaler offers`, and contact its operators.",
		Page:   "operations.md#a-provider-dies-closes-or-refuses-our-credentials"},
	{Code: CodeUnreachable, Class: OtherError, Blames: true, Rests: true,
		Means:  "A provider's API cannot be used: the network is down, or the credentials are not accepted.",
		Remedy: "Read the condition of each provider in `liqo-autoscaler offers`, and contact its operators.",
		Page:   "operations.md#a-provider-dies-closes-or-refuses-our-credentials"},
	{Code: CodeTimeout, Class: OtherError, Blames: true, Rests: true, OfStage: true,
		Means:  "A step did not reach the stage that the message names within its budget.",
		Remedy: "Find out why the step does not reach the stage; the instance tries the next provider automatically.",
		Page:   "operations.md#an-instance-does-not-become-ready"},
	{Code: CodeCancelled, Class: OtherError, Rests: true,
		Means:  "An operator cancelled the workflow.",
		Remedy: "Nothing needs to be done: Cluster Autoscaler requests another node if pods still need one."},
	{Code: CodeSpending, Class: OutOfResources, Rests: true,
		Means:  "Every offer with room costs more than the rest of the node group's `spending` limit.",
		Remedy: "Wait, or raise the limit.",
		Page:   "cost.md"},
	{Code: CodePaused, Class: OtherError, Rests: true,
		Means:  "An operator paused the node group before a provider had granted a hold to the instance.",
		Remedy: "Run `liqo-autoscaler resume group ID`, unless the node group is meant to stay paused."},
	{Code: CodeNoRoom, Class: OtherError, OfStage: true,
		Means:  "This cluster has no room for its own pods of a peering: its gateway, or a virtual kubelet.",
		Remedy: "Reserve room for the pod that the message names, or give it a priority class.",
		Page:   "liqo.md#parts-of-a-peering"},
	{Code: CodeLost, Class: OtherError, Rests: true,
		Means: "The node is lost: its objects were deleted, or its provider is gone.",
		Remedy: "Read the condition of the provider in `liqo-autoscaler offers`; if the provider has no condition, find " +
			"out what deletes ResourceSlices or VirtualNodes.",
		Page: "operations.md#a-provider-dies-closes-or-refuses-our-credentials"},
	{Code: CodeInternal, Class: OtherError, Rests: true,
		Means:  "The failure is a defect, or an error in Temporal.",
		Remedy: "Read the worker's log, and report the defect."},
}

// Codes lists every code in the order of the table, for metrics.
var Codes = codes()

func codes() []Code {
	all := make([]Code, 0, len(CodeTable))
	for _, r := range CodeTable {
		all = append(all, r.Code)
	}
	return all
}

// Row returns the code's row of CodeTable. A code that this version does not know is treated as CodeInternal.
func (c Code) Row() CodeRow {
	for _, r := range CodeTable {
		if r.Code == c {
			return r
		}
	}
	return CodeInternal.Row()
}

// Failure is a code with a sentence for people: the error, its place and the remedy. The message has at most 500
// characters.
type Failure struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// Stage is the first stage that was not reached, in the backend's words; empty when no stage is to blame.
	Stage string `json:"stage,omitempty"`
	// Provider is the id of the provider to which the failure belongs, if any.
	Provider string `json:"provider,omitempty"`
}

const maxMessage = 500

// NewFailure returns a Failure whose message is cut at the 500 characters that CA shows.
func NewFailure(code Code, provider, stage, message string) *Failure {
	return &Failure{Code: code, Provider: provider, Stage: stage, Message: shorten.Words(message, maxMessage)}
}

// ErrOutcomeUnknown means that the answer of an operation was lost, so that the operation may or may not have been
// booked. The caller must read the group again before it answers requests about the group.
var ErrOutcomeUnknown = errors.New("outcome unknown")

// ErrUnavailable means that consistent data is not available now: the entity does not run, has not recovered, or
// Temporal does not answer. Nothing was changed.
var ErrUnavailable = errors.New("unavailable")

// ErrTemporal means that Temporal does not answer. It is always wrapped together with ErrUnavailable.
var ErrTemporal = errors.New("Temporal does not answer")

// ErrNotRunning means that the entity does not run. It is always wrapped together with ErrUnavailable.
var ErrNotRunning = errors.New("does not run")

// RefusalKind names the kind of a Refusal. It is the type of the Temporal application error that carries the refusal.
type RefusalKind string

// These are the kinds of a refusal.
const (
	RefusedInvalid        RefusalKind = "Invalid"        // the arguments are wrong: delta, id of another group
	RefusedMax            RefusalKind = "MaxSize"        // target + delta would exceed max, or the group is paused
	RefusedSpending       RefusalKind = "Spending"       // the group may not spend more, see Spending
	RefusedPrecondition   RefusalKind = "Precondition"   // nothing can be cancelled
	RefusedExpired        RefusalKind = "Expired"        // the caller stopped waiting before the operation ran
	RefusedNotInitialised RefusalKind = "NotInitialised" // the entity has not recovered yet, or has no spec yet
	RefusedOtherCluster   RefusalKind = "OtherCluster"   // the caller's cluster does not own the hub
)

// Refusal reports that an operation changed nothing, and why.
type Refusal struct {
	Kind    RefusalKind `json:"kind"`
	Message string      `json:"message"`
}

func (r *Refusal) Error() string { return r.Message }

// Refuse returns a Refusal.
func Refuse(kind RefusalKind, message string) *Refusal { return &Refusal{Kind: kind, Message: message} }

// IsRefused reports whether err is, or wraps, a Refusal of this kind.
func IsRefused(err error, kind RefusalKind) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Kind == kind
}
