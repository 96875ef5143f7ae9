package server

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
)

func (s *Server) put(w http.ResponseWriter, r *http.Request, who Writer) error {
	turn, err := turnOf(r)
	if err != nil {
		return err
	}
	posted, err := s.decode(r, who)
	if err != nil {
		return err
	}
	now := s.options.Now()
	record := store.Record{Offer: posted, Writer: who.Name, Updated: now.UTC()}
	created, err := s.options.Store.Put(r.Context(), record, turn, now)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		w.Header().Set("Location", r.URL.Path)
	}
	level := slog.LevelInfo
	if !created && turn.Session != 0 {
		level = slog.LevelDebug // an agent's renewal, of which there are many
	}
	s.options.Log.Log(r.Context(), level, "offer put", "offer", posted.Name, "writer", who.Name, "created", created,
		"expires", posted.Expires, "session", turn.Session)
	s.reply(w, r, status, api.ContentJSON, view(record, now))
	return nil
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, _ Writer) error {
	now := s.options.Now()
	record, err := s.options.Store.Get(r.Context(), r.PathValue("name"), now)
	if err != nil {
		return err
	}
	s.reply(w, r, http.StatusOK, api.ContentJSON, view(record, now))
	return nil
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request, who Writer) error {
	name := r.PathValue("name")
	turn, err := turnOf(r)
	if err == nil {
		err = s.options.Store.Delete(r.Context(), name, who.Name, turn, s.options.Now())
	}
	if err != nil {
		return err
	}
	s.options.Log.Info("offer deleted", "offer", name, "writer", who.Name)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// decode reads and checks the body, and fills in what it leaves out.
func (s *Server) decode(r *http.Request, who Writer) (api.Posted, error) {
	body, err := readJSON(r)
	if err != nil {
		return api.Posted{}, err
	}
	posted, err := api.Decode(body)
	if err != nil {
		return api.Posted{}, invalid(api.FieldErrors(err)...)
	}
	if name := r.PathValue("name"); posted.Name != name {
		return api.Posted{}, invalid(api.FieldError{Path: "name", Detail: "is not the name in the path"})
	}
	if len(who.Providers) == 1 && posted.Provider == "" {
		posted.Provider = who.Providers[0]
	}
	if err := who.allow(posted); err != nil {
		return api.Posted{}, err
	}
	err = s.expire(&posted)
	return posted, err
}

func readJSON(r *http.Request) ([]byte, error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != api.ContentJSON {
		return nil, problem(http.StatusUnsupportedMediaType, "", "send Content-Type: %s", api.ContentJSON)
	}
	body, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, problem(http.StatusRequestEntityTooLarge, "", "a body has at most %d bytes", api.MaxBody)
	case err != nil:
		return nil, problem(http.StatusBadRequest, "", "the body ended early")
	case !json.Valid(body):
		return nil, problem(http.StatusBadRequest, "", "the body is not JSON")
	}
	return body, nil
}

// allow checks the offer against the writer's bounds.
func (w Writer) allow(posted api.Posted) error {
	namespace := posted.Credentials.SecretRef.Namespace
	if len(w.SecretNamespaces) > 0 && !slices.Contains(w.SecretNamespaces, namespace) {
		return invalid(api.FieldError{Path: "credentials.secretRef.namespace",
			Detail: "is not one of this writer's namespaces"})
	}
	if len(w.Providers) > 0 && !slices.Contains(w.Providers, posted.Provider) {
		return invalid(api.FieldError{Path: "provider", Detail: "is not one of this writer's clusters"})
	}
	return nil
}

// expire sets the default expiry and checks the bounds. What is stored is always a time of this server's clock.
func (s *Server) expire(posted *api.Posted) error {
	now := s.options.Now()
	end, path := now.Add(s.options.DefaultTTL).Truncate(time.Second), "expires"
	switch {
	case posted.TTLSeconds > int64(s.options.MaxTTL/time.Second): // also what no Duration can hold
		end, path = now.Add(s.options.MaxTTL+time.Minute), "ttlSeconds"
	case posted.TTLSeconds > 0:
		end = now.Add(time.Duration(posted.TTLSeconds) * time.Second)
	case posted.Expires != nil:
		end = posted.Expires.Truncate(time.Second)
	}
	end = end.UTC()
	posted.Expires, posted.TTLSeconds = &end, 0
	switch {
	case !now.Before(end):
		return invalid(api.FieldError{Path: path, Detail: "is not in the future"})
	case end.Sub(now) > s.options.MaxTTL:
		return invalid(api.FieldError{Path: path, Detail: "is more than " + s.options.MaxTTL.String() + " away"})
	}
	return nil
}

func invalid(errs ...api.FieldError) error {
	p := problem(http.StatusUnprocessableEntity, typeInvalid, "nothing was changed")
	p.Errors = errs
	return p
}

func view(r store.Record, now time.Time) api.Offer {
	o := api.Offer{Posted: r.Offer, Epoch: discovery.Epoch(r.Offer.Offer()), Writer: r.Writer, Updated: r.Updated.UTC()}
	if r.Offer.Expires != nil {
		o.RemainingSeconds = r.Offer.Expires.Sub(now).Seconds()
	}
	return o
}
