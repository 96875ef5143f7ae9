package fleet

import "github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"

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
