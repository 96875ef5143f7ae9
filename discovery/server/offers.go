package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
)

// These constants are the effects of a write, in the words of the log.
const (
	created = "created"
	changed = "changed"
	renewed = "renewed"
	deleted = "deleted"
	begun   = "begun"
)

func (s *Server) put(w http.ResponseWriter, r *http.Request, who Writer) (did string, err error) {
	turn, err := turnOf(r)
	if err != nil {
		return "", err
	}
	now, err := s.options.Store.Now(r.Context())
	if err != nil {
		return "", err
	}
	posted, err := decode(r, who, now)
	if err != nil {
		return "", err
	}
	record := store.Record{Offer: posted, Writer: who.Name, Updated: now.UTC()}
	before, err := s.options.Store.Put(r.Context(), record, turn, now)
	if errors.Is(err, store.ErrOwned) && s.vacate(r.Context(), who, posted.Name, now) {
		before, err = s.options.Store.Put(r.Context(), record, turn, now)
	}
	if err != nil {
		return "", err
	}
	status := http.StatusOK
	switch {
	case before.Writer == "":
		did, status = created, http.StatusCreated
		w.Header().Set("Location", r.URL.Path)
	case content(before) == content(record):
		did = renewed
	default:
		did = changed
	}
	s.reply(w, r, status, api.ContentJSON, view(record, now))
	return did, nil
}

// vacate deletes the offer with this name if the offer is not valid for the present writers. It reports whether it
// has deleted the offer.
func (s *Server) vacate(ctx context.Context, who Writer, name string, now time.Time) bool {
	isInForce, err := s.inForce(who)
	if err != nil {
		return false
	}
	found, err := s.options.Store.Get(ctx, name, now)
	return err == nil && !isInForce(found) &&
		s.options.Store.Delete(ctx, name, found.Writer, store.Turn{}, now) == nil
}

// content returns a fingerprint of the offer without the time at which it expires.
func content(r store.Record) string {
	r.Offer.Expires = nil
	return discovery.Epoch(r.Offer.Offer())
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, who Writer) (did string, err error) {
	now, err := s.options.Store.Now(r.Context())
	if err != nil {
		return "", err
	}
	name := r.PathValue("name")
	if !nameable(name) {
		return "", store.ErrNotFound
	}
	isInForce, err := s.inForce(who)
	if err != nil {
		return "", err
	}
	record, err := s.options.Store.Get(r.Context(), name, now)
	if err == nil && !(who.mayRead(record) && isInForce(record)) {
		err = store.ErrNotFound
	}
	if err != nil {
		return "", err
	}
	s.reply(w, r, http.StatusOK, api.ContentJSON, view(record, now))
	return "", nil
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request, who Writer) (did string, err error) {
	name := r.PathValue("name")
	if !nameable(name) {
		return "", invalid(api.FieldError{Path: "name", Detail: "is not a name of an offer"})
	}
	turn, err := turnOf(r)
	if err != nil {
		return "", err
	}
	now, err := s.options.Store.Now(r.Context())
	if err != nil {
		return "", err
	}
	if err := s.options.Store.Delete(r.Context(), name, who.Name, turn, now); err != nil {
		return "", err
	}
	w.WriteHeader(http.StatusNoContent)
	return deleted, nil
}

// nameable reports whether all databases accept the name in a query. PostgreSQL refuses zero bytes and invalid UTF-8.
func nameable(name string) bool { return utf8.ValidString(name) && !strings.Contains(name, "\x00") }

// decode reads the offer in the body of a request, checks it, and fills in the defaults.
func decode(r *http.Request, who Writer, now time.Time) (api.Posted, error) {
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
	err = expire(&posted, now)
	return posted, err
}

func readJSON(r *http.Request) ([]byte, error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != api.ContentJSON {
		return nil, problem(http.StatusUnsupportedMediaType, "", "send Content-Type: %s", api.ContentJSON)
	}
	if r.Header.Get("Content-Encoding") != "" {
		return nil, problem(http.StatusUnsupportedMediaType, "", "send the body without Content-Encoding")
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

// allow returns an error if the offer has a namespace or a provider that the writer may not use.
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

// These constants are the default and the maximum of the time after which an offer expires.
const (
	defaultTTL = 24 * time.Hour
	maxTTL     = 30 * 24 * time.Hour
)

// expire sets the time at which the offer expires, and checks the bounds of this time. now is the time of the store's
// clock, because the time is stored and compared with that clock.
func expire(posted *api.Posted, now time.Time) error {
	end, path := now.Add(defaultTTL).Truncate(time.Second), "expires"
	switch {
	case posted.TTLSeconds > int64(maxTTL/time.Second): // this also excludes values that overflow a Duration
		end, path = now.Add(maxTTL+time.Minute), "ttlSeconds"
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
	case end.Sub(now) > maxTTL:
		return invalid(api.FieldError{Path: path, Detail: "is more than " + maxTTL.String() + " away"})
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
