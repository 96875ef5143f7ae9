// Package api is the wire format of the discovery server, version 1. The server and this project's client use it.
// discovery/server/openapi.yaml describes the format for all other clients. A test compares that file with this
// package.
package api

import (
	"errors"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// These constants are the limits of the API.
const (
	MaxBody  = 8 << 10 // bytes of a request's body; an agent's offer has less than one KiB
	MaxLimit = 500     // offers in one page
)

// These constants are the paths. PathOffers is the list of the offers, and PathOffers/<name> is one offer. An agent
// starts a session at PathSessions.
const (
	PathOffers   = "/v1/offers"
	PathSessions = "/v1/sessions"
)

// These constants are the query parameters of a write within a session.
const (
	ParamSession  = "session"
	ParamSequence = "sequence"
)

// Posted is an offer in the form in which a writer sends it. Consumers compare the provider id in the offer with the
// id of the cluster to which the credentials lead.
type Posted struct {
	discovery.Spec
	discovery.Contract
	// TTLSeconds is the time after which the offer expires, by the server's clock. A writer can set it instead of
	// Expires.
	TTLSeconds int64 `json:"ttlSeconds,omitempty"`
	// Consumer is the Liqo cluster id of the consumer to which the offer is restricted: no other consumer may read or
	// use the offer. Empty means all consumers.
	Consumer string `json:"consumer,omitempty"`
}

// Begin is the request that starts a session of a provider's agent.
type Begin struct {
	// Provider is the Liqo cluster id of the agent's cluster.
	Provider string `json:"provider"`
}

// Session is the response to Begin. Each write of the agent contains the number of the session, and a sequence number
// that increases from write to write. When the same writer starts another session for the same provider, this session
// ends.
type Session struct {
	Session int64 `json:"session"`
}

// Offer is an offer in the form in which the server returns it.
type Offer struct {
	Posted
	// Epoch changes when the offer's content changes.
	Epoch string `json:"epoch"`
	// Writer is the name of the client that wrote the offer.
	Writer string `json:"writer"`
	// Updated is the time of the last write of the offer.
	Updated time.Time `json:"updated"`
	// RemainingSeconds is the time from the response until the offer expires. Clients should measure this time with
	// their own clock, because Expires is a time of the server's clock.
	RemainingSeconds float64 `json:"remainingSeconds"`
}

// List is one page of offers, ordered by name.
type List struct {
	Items []Offer `json:"items"`
	// Next is the value of "after" for the next page; empty on the last page.
	Next string `json:"next,omitempty"`
}

// Problem is an RFC 9457 problem document.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Errors lists the faults of the request, field by field.
	Errors []FieldError `json:"errors,omitempty"`
}

// FieldError is one fault of a request.
type FieldError struct {
	// Path is the field's path, such as "lendable.cpu"; empty if the fault concerns the whole body.
	Path   string `json:"path"`
	Detail string `json:"detail"`
}

// TypeSession is the type of the problem for a write in a session that has ended.
const TypeSession = "urn:liqo-autoscaler:problem:session-over"

// TypeReplay is the type of the problem for a write whose sequence number is not higher than the sequence number of
// an earlier write.
const TypeReplay = "urn:liqo-autoscaler:problem:write-replayed"

// These constants are the content types of the API.
const (
	ContentJSON    = "application/json"
	ContentProblem = "application/problem+json"
)

// Decode parses an offer that a writer has sent. It refuses unknown fields, unless the offer was written for a later
// contract, which may define such fields. FieldErrors can split the error into its faults.
func Decode(body []byte) (Posted, error) {
	if err := discovery.ContractOf(body).VersionFaults().Err(); err != nil {
		return Posted{}, err
	}
	var p Posted
	_, faults, err := strictyaml.Unmarshal(body, &p)
	if p.Later() { // the server stores only the fields that it knows, and therefore the version of its own contract
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

// Check returns the result of Faults as an error. FieldErrors can split the error into its faults.
func (p *Posted) Check() error { return p.Faults().Err() }

// Faults returns the faults of the fields, by path. Credentials must be a secretRef. A file name is a fault, because
// it has no meaning on another machine, and because a writer could make a worker open the worker's own files.
func (p *Posted) Faults() strictyaml.Faults {
	faults := p.Spec.Faults()
	switch {
	case p.TTLSeconds < 0:
		faults.Add("ttlSeconds", "is %d: give at least 1", p.TTLSeconds)
	case p.TTLSeconds > 0 && p.Expires != nil:
		faults.Add("ttlSeconds", "and expires are both set: set one of them")
	}
	if p.Consumer != "" && !fleet.ValidProviderID(p.Consumer) {
		faults.Add("consumer", "%q is not a Liqo cluster id: give the id of the consumer", p.Consumer)
	}
	if p.Credentials.KubeconfigFile != "" {
		faults.Add("credentials.kubeconfigFile",
			"is not accepted by the discovery server; use secretRef, a Secret in the consumer cluster")
	}
	if p.VirtualKubelet != "" {
		faults.Add("virtualKubelet", "is not accepted by the discovery server; only the consumer's own offers may set it")
	}
	return faults
}

// FieldErrors splits an error of Decode or Check into its faults. It returns nil for any other error.
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
