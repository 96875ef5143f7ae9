// Package api is the wire format of the discovery server, version 1: what its server and its client agree on. The
// description for everybody else is discovery/server/openapi.yaml; a test holds the two together.
package api

import (
	"errors"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// Limits of the API.
const (
	MaxBody  = 8 << 10 // bytes of a request's body: an agent's offer has less than one KiB
	MaxLimit = 500     // offers of one page
)

// Paths. PathOffers lists the offers, and PathOffers/<name> is one; PathSessions is where an agent begins.
const (
	PathOffers   = "/v1/offers"
	PathSessions = "/v1/sessions"
)

// Parameters of a write within a session.
const (
	ParamSession  = "session"
	ParamSequence = "sequence"
)

// Posted is what a writer puts: an offer. The provider in it is a claim, which those who use the offer check over its
// credentials.
type Posted struct {
	discovery.Spec
	discovery.Contract
	// TTLSeconds is how long the offer lives from now on, by the server's clock; instead of Expires.
	TTLSeconds int64 `json:"ttlSeconds,omitempty"`
	// Consumer is the Liqo cluster id of the only consumer that the offer is for, and that is told of it; empty: all.
	Consumer string `json:"consumer,omitempty"`
}

// Begin asks for a session of a provider's agent.
type Begin struct {
	// Provider is the Liqo cluster id of the agent's cluster.
	Provider string `json:"provider"`
}

// Session is the answer. Writes of the agent carry its number and a sequence that rises from write to write. The next
// session of the same writer and provider ends this one.
type Session struct {
	Session int64 `json:"session"`
}

// Offer is what the server answers.
type Offer struct {
	Posted
	// Epoch changes when the offer's content changes.
	Epoch string `json:"epoch"`
	// Writer is who put it.
	Writer string `json:"writer"`
	// Updated is when it was last put.
	Updated time.Time `json:"updated"`
	// RemainingSeconds is how long it lives from this answer on; count it down by your own clock, for Expires is by the
	// server's.
	RemainingSeconds float64 `json:"remainingSeconds"`
}

// List is one page of offers, in name order.
type List struct {
	Items []Offer `json:"items"`
	// Next is the value of "after" for the next page; empty on the last.
	Next string `json:"next,omitempty"`
}

// Problem is an RFC 9457 problem document.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Errors lists what is wrong in the request, field by field.
	Errors []FieldError `json:"errors,omitempty"`
}

// FieldError is one thing wrong in a request.
type FieldError struct {
	// Path is the field's path, such as "lendable.cpu"; empty when the whole body is meant.
	Path   string `json:"path"`
	Detail string `json:"detail"`
}

// TypeSession is the type of the problem that a session is over.
const TypeSession = "urn:liqo-autoscaler:problem:session-over"

// TypeReplay is the type of the problem that the session has written with this sequence, or a later one.
const TypeReplay = "urn:liqo-autoscaler:problem:write-replayed"

// ContentTypes of the API.
const (
	ContentJSON    = "application/json"
	ContentProblem = "application/problem+json"
)

// Decode reads what a writer puts. Unknown fields are refused, unless the writer follows a later contract, whose fields
// they may be; the error can be split with FieldErrors.
func Decode(body []byte) (Posted, error) {
	if err := discovery.ContractOf(body).VersionFaults().Err(); err != nil {
		return Posted{}, err
	}
	var p Posted
	_, faults, err := strictyaml.Unmarshal(body, &p)
	if p.Later() { // what is stored has no field of the later version
		faults, p.Version = faults.WithoutUnknown(), discovery.ContractVersion
	}
	if err == nil {
		err = faults.And(p.Faults()).Locate(body).Err()
	}
	if err != nil {
		return Posted{}, err
	}
	return p, nil
}

// Check is Faults as an error, which can be split with FieldErrors.
func (p *Posted) Check() error { return p.Faults().Err() }

// Faults are what is wrong with the fields, by path. Credentials must be a secretRef: a file name means nothing on
// another machine, and must not be anybody's way to have a worker open its files.
func (p *Posted) Faults() strictyaml.Faults {
	faults := p.Spec.Faults()
	switch {
	case p.TTLSeconds < 0:
		faults.Add("ttlSeconds", "is %d: give at least 1", p.TTLSeconds)
	case p.TTLSeconds > 0 && p.Expires != nil:
		faults.Add("ttlSeconds", "and expires are both set: set one of them")
	}
	if p.Consumer != "" && !fleet.ValidProviderID(p.Consumer) {
		faults.Add("consumer", "%q is no Liqo cluster id: write that of the consumer", p.Consumer)
	}
	if p.Credentials.KubeconfigFile != "" {
		faults.Add("credentials.kubeconfigFile",
			"is not accepted over the network; use secretRef, a Secret in the consumer cluster")
	}
	if p.VirtualKubelet != "" {
		faults.Add("virtualKubelet", "is not accepted over the network; only the consumer's own offers may name one")
	}
	return faults
}

// FieldErrors splits an error of Decode or Check; nil for any other error.
func FieldErrors(err error) []FieldError {
	var faults strictyaml.Faults
	if !errors.As(err, &faults) {
		return nil
	}
	var out []FieldError
	for _, f := range faults[:min(len(faults), maxErrors)] {
		out = append(out, FieldError{Path: f.Path, Detail: f.Message})
	}
	return out
}

const maxErrors = 40
