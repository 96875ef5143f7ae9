package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
)

// These constants are the types of problems that this API defines. All other problems have the type "about:blank",
// which means that the problem is described by its status (RFC 9457, 4.2.1).
const (
	typeInvalid = "urn:liqo-autoscaler:problem:invalid-offer"
	typeOwned   = "urn:liqo-autoscaler:problem:offer-of-another-writer"
	typeFull    = "urn:liqo-autoscaler:problem:too-many-offers"
)

var titles = map[string]string{
	typeInvalid:     "The offer is invalid",
	typeOwned:       "The offer belongs to another writer",
	typeFull:        "Too many offers",
	api.TypeReplay:  "The write was repeated",
	api.TypeSession: "The session has ended",
}

type problemError struct{ api.Problem }

func (p *problemError) Error() string {
	text := fmt.Sprintf("%d %s: %s", p.Status, p.Title, p.Detail)
	for _, e := range p.Errors {
		text += "; " + strings.TrimPrefix(e.Path+": "+e.Detail, ": ")
	}
	return text
}

func problem(status int, kind, format string, args ...any) *problemError {
	return &problemError{api.Problem{Type: cmp.Or(kind, "about:blank"), Status: status,
		Title: cmp.Or(titles[kind], http.StatusText(status)), Detail: fmt.Sprintf(format, args...)}}
}

// translate returns the problem, with its status, that corresponds to an error.
func translate(err error) *problemError {
	var p *problemError
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, store.ErrNotFound):
		return problem(http.StatusNotFound, "", "the offer does not exist or has expired")
	case errors.Is(err, store.ErrOwned):
		return problem(http.StatusForbidden, typeOwned,
			"until the offer expires, only its writer may replace or delete it")
	case errors.Is(err, store.ErrFull):
		return problem(http.StatusConflict, typeFull,
			"a writer may have at most %d offers, with %d bytes in total, and as many agents; delete some", store.MaxPerWriter,
			store.MaxPerWriterBytes)
	case errors.Is(err, store.ErrSession):
		return problem(http.StatusConflict, api.TypeSession,
			"the provider's agent has started a newer session, or this server does not know the session; nothing was changed")
	case errors.Is(err, store.ErrReplayed):
		return problem(http.StatusConflict, api.TypeReplay,
			"the session has already written with this sequence number or a higher one; nothing was changed")
	default: // the cause belongs in the log, not in the response
		return problem(http.StatusServiceUnavailable, "",
			"the server's database failed, see the server's log; try again: a write may have taken effect")
	}
}

func (s *Server) reply(w http.ResponseWriter, r *http.Request, status int, contentType string, body any) {
	raw, err := json.Marshal(body)
	if err != nil { // cannot happen with these types
		s.options.Log.Error("answer cannot be encoded", "method", r.Method, "path", r.URL.Path, "error", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if _, err := w.Write(append(raw, '\n')); err != nil {
		s.options.Log.Debug("the client did not read the answer", "method", r.Method, "path", r.URL.Path, "error", err)
	}
}
