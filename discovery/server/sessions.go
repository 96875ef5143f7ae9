package server

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// begin handles the request of a provider's agent for a new session. It ends the agent's previous session.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, who Writer) (did string, err error) {
	body, err := readJSON(r)
	if err != nil {
		return "", err
	}
	var asked api.Begin
	if err := json.Unmarshal(body, &asked); err != nil {
		return "", problem(http.StatusBadRequest, "", "the body does not match /v1/openapi.yaml")
	}
	if !fleet.ValidProviderID(asked.Provider) {
		return "", invalid(api.FieldError{Path: "provider", Detail: "is not a Liqo cluster id"})
	}
	if len(who.Providers) > 0 && !slices.Contains(who.Providers, asked.Provider) {
		return "", invalid(api.FieldError{Path: "provider", Detail: "is not one of this writer's clusters"})
	}
	session, err := s.options.Store.Begin(r.Context(), who.Name, asked.Provider)
	if err != nil {
		return "", err
	}
	s.reply(w, r, http.StatusCreated, api.ContentJSON, api.Session{Session: session})
	return begun, nil
}

// turnOf returns the session and the sequence number of the write, or the zero Turn for a write without a session.
func turnOf(r *http.Request) (turn store.Turn, err error) {
	query := r.URL.Query()
	if !query.Has(api.ParamSession) && !query.Has(api.ParamSequence) {
		return turn, nil
	}
	if turn.Session, err = positive(query, api.ParamSession); err == nil {
		turn.Sequence, err = positive(query, api.ParamSequence)
	}
	return turn, err
}

func positive(query url.Values, name string) (int64, error) {
	n, err := strconv.ParseInt(query.Get(name), 10, 64)
	if err != nil || n < 1 || len(query[name]) > 1 {
		return 0, problem(http.StatusBadRequest, "",
			"give session and sequence together, each once and a whole number from 1")
	}
	return n, nil
}
