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

// maxAnswer and maxIdentity are the maximum sizes of a host's answer, in bytes. maxWords is the maximum length, in
// characters, of a host's text in an error.
const (
	maxAnswer   = 16 << 20
	maxIdentity = 4 << 20 // for a request of the host's identity only
	maxWords    = 500
)

// host is a client of one host group. An error quotes text of the host only if the request contained no user data.
type host struct {
	access
	at       *url.URL
	userData *template.Template
	pin      string // hash of address and authorities
	web      *http.Client
}

// hostGroup is a host group in the form of the host's API.
type hostGroup struct {
	Name string `json:"name"`
	// RAM and CPUs are the maximum of one machine; 0 means that the host does not report a maximum.
	RAM  int64 `json:"ram_bytes"`
	CPUs int64 `json:"cpus"`
	// Refuses and Reason do not belong to Slicer's API. A host behind its own front end can set them to report that
	// the host accepts no new machines (Cordoned), or has withdrawn all machines (Drained).
	Refuses fleet.RefusingKind `json:"refuses"`
	Reason  string             `json:"reason"`
}

// machine is a microVM in the form of the host's API.
type machine struct {
	Hostname string   `json:"hostname,omitempty"`
	RAM      int64    `json:"ram_bytes"`
	CPUs     int64    `json:"cpus"`
	Tags     []string `json:"tags"`
	UserData string   `json:"userdata,omitempty"`

	attempt string // the attempt in the machine's tag
}

// request sends one request and returns the HTTP status. If it returns an error, the status is 0.
func (h *host) request(ctx context.Context, method string, in, out any, most int64, path ...string) (status int,
	err error) {
	var body io.Reader
	if in != nil {
		content, err := json.Marshal(in)
		if err != nil {
			return 0, errorf(backend.ErrInvalid, "write request: %v", err)
		}
		body = bytes.NewReader(content)
	}
	request, err := http.NewRequestWithContext(ctx, method, h.at.JoinPath(path...).String(), body)
	if err != nil {
		return 0, errorf(backend.ErrInvalid, "url is not one")
	}
	request.Header.Set("Authorization", "Bearer "+h.Token)
	request.Header.Set("Content-Type", "application/json")
	response, err := h.web.Do(request)
	if err != nil {
		return 0, errorf(backend.ErrUnreachable, "host %s does not answer: %v", h.at.Host, errors.Unwrap(err))
	}
	defer response.Body.Close()
	answer, err := h.answer(response, most)
	switch {
	case err != nil:
		return 0, err
	case response.StatusCode == http.StatusUnauthorized, response.StatusCode == http.StatusForbidden:
		return 0, errorf(errCredentials, "host %s does not accept the token: HTTP status %d", h.at.Host, response.StatusCode)
	case response.StatusCode/100 == 2 && out != nil && json.Unmarshal(answer, out) != nil:
		return 0, errorf(backend.ErrUnreachable, "host %s answers, and not as the API of microVMs does", h.at.Host)
	}
	return response.StatusCode, nil
}

// answer reads the host's answer. It fails when the answer has more bytes than the parameter most.
func (h *host) answer(response *http.Response, most int64) (answer []byte, err error) {
	if response.ContentLength <= most {
		answer, err = io.ReadAll(io.LimitReader(response.Body, most+1))
	}
	switch {
	case response.ContentLength > most || int64(len(answer)) > most:
		return nil, errorf(backend.ErrInvalid, "the answer of host %s is larger than %d bytes", h.at.Host, most)
	case err != nil:
		return nil, errorf(backend.ErrUnreachable, "host %s ends its answer early", h.at.Host)
	}
	return answer, nil
}

// read sends a GET request that must succeed.
func (h *host) read(ctx context.Context, out any, most int64, path ...string) error {
	status, err := h.request(ctx, http.MethodGet, nil, out, most, path...)
	if err == nil && status != http.StatusOK {
		err = errorf(backend.ErrUnreachable, "host %s answers with HTTP status %d", h.at.Host, status)
	}
	return err
}

// group reads the host group, and returns nil when the host does not have it.
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

// plain shortens the host group's texts to the part that errors may quote.
func (g hostGroup) plain(token string) *hostGroup {
	switch words := strings.ReplaceAll(strings.ToValidUTF8(g.Reason, "?"), token, "…"); g.Refuses {
	case fleet.RefusingCordoned, fleet.RefusingDrained:
		g.Reason = shorten.Words("host group "+g.Name+" is "+string(g.Refuses)+": "+words, maxWords)
	default:
		g.Refuses, g.Reason = "", ""
	}
	return &g
}

// machines lists the machines in the order of their host names. It returns the machines whose tag has the prefix in
// the parameter tag. The parameter of is the attempt's name, which follows the prefix. If it is "", machines returns
// the machines of all attempts. It filters itself and does not rely on the host's filter.
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
		if len(validation.IsDNS1123Subdomain(m.Hostname)) > 0 { // the name becomes part of a path
			return nil, errorf(backend.ErrInvalid, "host %s has one of our machines with a name that is none: %.80q", h.at.Host,
				m.Hostname)
		}
	}
	slices.SortFunc(found, func(a, b machine) int { return cmp.Compare(a.Hostname, b.Hostname) })
	return found, nil
}

// create requests a machine. Its error does not contain the host's reason for a refusal, because that reason may
// quote the user data.
func (h *host) create(ctx context.Context, m machine) error {
	status, err := h.request(ctx, http.MethodPost, m, nil, maxAnswer, "hostgroup", h.HostGroup, "nodes")
	switch {
	case err != nil, status/100 == 2:
		return err
	case status == http.StatusTooManyRequests, status == http.StatusInsufficientStorage:
		return errorf(backend.ErrFull, "host %s has no room for a machine: HTTP status %d", h.at.Host, status)
	case status/100 == 4:
		return errorf(backend.ErrDenied, "host %s makes no machine: HTTP status %d, its log says why", h.at.Host, status)
	default:
		return errorf(backend.ErrUnreachable, "host %s answers with HTTP status %d", h.at.Host, status)
	}
}

// remove requests the removal of a machine. An absent machine is success.
func (h *host) remove(ctx context.Context, hostname string) error {
	status, err := h.request(ctx, http.MethodDelete, nil, nil, maxAnswer, "hostgroup", h.HostGroup, "nodes", hostname)
	if err == nil && status/100 != 2 && status != http.StatusNotFound {
		err = errorf(backend.ErrUnreachable, "host %s does not remove machine %s: HTTP status %d", h.at.Host, hostname,
			status)
	}
	return err
}
