package server

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
)

func (s *Server) put(w http.ResponseWriter, r *http.Request, who Writer) error {
	posted, err := s.decode(r, who)
	if err != nil {
		return err
	}
	now := s.options.Now()
	record := store.Record{Offer: posted, Writer: who.Name, Updated: now.UTC()}
	created, err := s.options.Store.Put(r.Context(), record, now)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		w.Header().Set("Location", r.URL.Path)
	}
	s.options.Log.Info("offer put", "offer", posted.Name, "writer", who.Name, "created", created, "expires", posted.Expires)
	s.reply(w, r, status, api.ContentJSON, view(record))
	return nil
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, _ Writer) error {
	record, err := s.options.Store.Get(r.Context(), r.PathValue("name"), s.options.Now())
	if err != nil {
		return err
	}
	s.reply(w, r, http.StatusOK, api.ContentJSON, view(record))
	return nil
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request, who Writer) error {
	name := r.PathValue("name")
	if err := s.options.Store.Delete(r.Context(), name, who.Name, s.options.Now()); err != nil {
		return err
	}
	s.options.Log.Info("offer deleted", "offer", name, "writer", who.Name)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// decode reads and judges the body, and fills in the expiry.
func (s *Server) decode(r *http.Request, who Writer) (api.Posted, error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != api.ContentJSON {
		return api.Posted{}, problem(http.StatusUnsupportedMediaType, "", "send Content-Type: %s", api.ContentJSON)
	}
	body, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return api.Posted{}, problem(http.StatusRequestEntityTooLarge, "", "a body has at most %d bytes", api.MaxBody)
	case err != nil:
		return api.Posted{}, problem(http.StatusBadRequest, "", "the body ended early")
	case !json.Valid(body):
		return api.Posted{}, problem(http.StatusBadRequest, "", "the body is not JSON")
	}
	posted, err := api.Decode(body)
	if err != nil {
		return api.Posted{}, invalid(api.FieldErrors(err)...)
	}
	if name := r.PathValue("name"); posted.Name != name {
		return api.Posted{}, invalid(api.FieldError{Path: "name", Detail: "is not the name in the path"})
	}
	if ref := posted.Credentials.SecretRef; len(who.SecretNamespaces) > 0 && !slices.Contains(who.SecretNamespaces, ref.Namespace) {
		return api.Posted{}, invalid(api.FieldError{Path: "credentials.secretRef.namespace", Detail: "is not one of this writer's namespaces"})
	}
	if len(who.Providers) == 1 && posted.Provider == "" {
		posted.Provider = who.Providers[0]
	}
	if len(who.Providers) > 0 && !slices.Contains(who.Providers, posted.Provider) {
		return api.Posted{}, invalid(api.FieldError{Path: "provider", Detail: "is not one of this writer's clusters"})
	}
	now := s.options.Now()
	if posted.Expires == nil {
		end := now.Add(s.options.DefaultTTL)
		posted.Expires = &end
	}
	end := posted.Expires.UTC().Truncate(time.Second)
	posted.Expires = &end
	switch {
	case !now.Before(end):
		return api.Posted{}, invalid(api.FieldError{Path: "expires", Detail: "is not in the future"})
	case end.Sub(now) > s.options.MaxTTL:
		return api.Posted{}, invalid(api.FieldError{Path: "expires", Detail: "is more than " + s.options.MaxTTL.String() + " away"})
	}
	return posted, nil
}

func invalid(errs ...api.FieldError) error {
	p := problem(http.StatusUnprocessableEntity, typeInvalid, "nothing was changed")
	p.Errors = errs
	return p
}

func view(r store.Record) api.Offer {
	o := r.Offer.Offer()
	o.Provider = r.Offer.Provider
	return api.Offer{Posted: r.Offer, Epoch: discovery.Epoch(o), Writer: r.Writer, Updated: r.Updated.UTC()}
}
