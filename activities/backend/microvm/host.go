package microvm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// How much a host may answer to one request, in bytes, and how much of its words is repeated, in characters.
const (
	maxAnswer   = 16 << 20
	maxIdentity = 4 << 20 // while it is only asked who it is
	maxWords    = 500
)

// host is a host group of one host. What the host says is repeated only where it can know no user data.
type host struct {
	access
	at       *url.URL
	userData *template.Template
	pin      string // of address and authorities
	web      *http.Client
}

// hostGroup is a host group as its host tells of it.
type hostGroup struct {
	Name string `json:"name"`
	// RAM and CPUs are the most that one machine may have; 0: it does not say.
	RAM  int64 `json:"ram_bytes"`
	CPUs int64 `json:"cpus"`
	// Refuses and Reason are no words of Slicer's: a host with a front of its own says so that it takes nothing new
	// (Cordoned), or has taken all back (Drained).
	Refuses fleet.RefusingKind `json:"refuses"`
	Reason  string             `json:"reason"`
}

// machine is a microVM.
type machine struct {
	Hostname string   `json:"hostname,omitempty"`
	RAM      int64    `json:"ram_bytes"`
	CPUs     int64    `json:"cpus"`
	Tags     []string `json:"tags"`
	UserData string   `json:"userdata,omitempty"`

	attempt string // whose it is, by its tag
}

// ask sends a request; status 0 goes with an error.
func (h *host) ask(ctx context.Context, method string, in, out any, most int64, path ...string) (status int,
	err error) {
	var body io.Reader
	if in != nil {
		content, err := json.Marshal(in)
		if err != nil {
			return 0, say(backend.ErrInvalid, "write request: %v", err)
		}
		body = bytes.NewReader(content)
	}
	request, err := http.NewRequestWithContext(ctx, method, h.at.JoinPath(path...).String(), body)
	if err != nil {
		return 0, say(backend.ErrInvalid, "url is not one")
	}
	request.Header.Set("Authorization", "Bearer "+h.Token)
	request.Header.Set("Content-Type", "application/json")
	response, err := h.web.Do(request)
	if err != nil {
		return 0, say(backend.ErrUnreachable, "host %s does not answer: %v", h.at.Host, errors.Unwrap(err))
	}
	defer response.Body.Close()
	answer, err := h.answer(response, most)
	switch {
	case err != nil:
		return 0, err
	case response.StatusCode == http.StatusUnauthorized, response.StatusCode == http.StatusForbidden:
		return 0, say(errCredentials, "host %s does not accept the token: HTTP status %d", h.at.Host, response.StatusCode)
	case response.StatusCode/100 == 2 && out != nil && json.Unmarshal(answer, out) != nil:
		return 0, say(backend.ErrUnreachable, "host %s answers, and not as the API of microVMs does", h.at.Host)
	}
	return response.StatusCode, nil
}

// answer is what the host says, if that is no more than it may be.
func (h *host) answer(response *http.Response, most int64) (answer []byte, err error) {
	if response.ContentLength <= most {
		answer, err = io.ReadAll(io.LimitReader(response.Body, most+1))
	}
	switch {
	case response.ContentLength > most || int64(len(answer)) > most:
		return nil, say(backend.ErrInvalid, "the answer of host %s is larger than %d bytes", h.at.Host, most)
	case err != nil:
		return nil, say(backend.ErrUnreachable, "host %s ends its answer early", h.at.Host)
	}
	return answer, nil
}

// read is a GET that must succeed.
func (h *host) read(ctx context.Context, out any, most int64, path ...string) error {
	status, err := h.ask(ctx, http.MethodGet, nil, out, most, path...)
	if err == nil && status != http.StatusOK {
		err = say(backend.ErrUnreachable, "host %s answers with HTTP status %d", h.at.Host, status)
	}
	return err
}

// group reads the host group; nil when the host has none of its name.
func (h *host) group(ctx context.Context, most int64) (*hostGroup, error) {
	var all []hostGroup
	if err := h.read(ctx, &all, most, "hostgroup"); err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Name == h.HostGroup {
			return all[i].plain(h.Token), nil
		}
	}
	return nil, nil
}

// plain leaves of its words what may be repeated.
func (g hostGroup) plain(token string) *hostGroup {
	switch words := strings.ReplaceAll(strings.ToValidUTF8(g.Reason, "?"), token, "…"); g.Refuses {
	case fleet.RefusingCordoned, fleet.RefusingDrained:
		g.Reason = shorten.Words("host group "+g.Name+" is "+string(g.Refuses)+": "+words, maxWords)
	default:
		g.Refuses, g.Reason = "", ""
	}
	return &g
}

// machines lists those with a tag that begins so and goes on with an attempt's name, or any, by their own names. The
// host's own filter is not relied upon.
func (h *host) machines(ctx context.Context, tag, of string) (found []machine, err error) {
	var all []machine
	if err := h.read(ctx, &all, maxAnswer, "hostgroup", h.HostGroup, "nodes"); err != nil {
		return nil, err
	}
	for _, m := range all {
		for _, t := range m.Tags {
			if name, ours := strings.CutPrefix(t, tag); ours && (of == "" || of == name) {
				m.attempt = name
				found = append(found, m)
				break
			}
		}
	}
	for _, m := range found {
		if len(validation.IsDNS1123Subdomain(m.Hostname)) > 0 { // it becomes part of a path
			return nil, say(backend.ErrInvalid, "host %s has one of our machines with a name that is none: %.80q", h.at.Host,
				m.Hostname)
		}
	}
	slices.SortFunc(found, func(a, b machine) int { return cmp.Compare(a.Hostname, b.Hostname) })
	return found, nil
}

// create asks for a machine. Why the host says no is not repeated, for it may quote the user data.
func (h *host) create(ctx context.Context, m machine) error {
	status, err := h.ask(ctx, http.MethodPost, m, nil, maxAnswer, "hostgroup", h.HostGroup, "nodes")
	switch {
	case err != nil, status/100 == 2:
		return err
	case status == http.StatusTooManyRequests, status == http.StatusInsufficientStorage:
		return say(backend.ErrFull, "host %s has no room for a machine: HTTP status %d", h.at.Host, status)
	case status/100 == 4:
		return say(backend.ErrDenied, "host %s makes no machine: HTTP status %d, its log says why", h.at.Host, status)
	default:
		return say(backend.ErrUnreachable, "host %s answers with HTTP status %d", h.at.Host, status)
	}
}

// remove asks for the removal of a machine; an absent one is removed.
func (h *host) remove(ctx context.Context, hostname string) error {
	status, err := h.ask(ctx, http.MethodDelete, nil, nil, maxAnswer, "hostgroup", h.HostGroup, "nodes", hostname)
	if err == nil && status/100 != 2 && status != http.StatusNotFound {
		err = say(backend.ErrUnreachable, "host %s does not remove machine %s: HTTP status %d", h.at.Host, hostname, status)
	}
	return err
}
