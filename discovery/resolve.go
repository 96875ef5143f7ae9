package discovery

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Options configures Resolve. A field with the zero value has its default.
type Options struct {
	// Parallel bounds the number of concurrent identifications of all callers together. Default 8.
	Parallel int
	// PerOffer bounds the time to identify one cluster. Default 5s.
	PerOffer time.Duration
	// Wait bounds how long one call of Offers waits for identifications. Unfinished identifications continue, and the next
	// call uses their results. Default 10s.
	Wait time.Duration
	// KeepID is the time for which a cluster's id is cached. Default 10m.
	KeepID time.Duration
	// KeepFailure is the time after a failed identification before the next attempt. Default 30s.
	KeepFailure time.Duration
	// SecretVersion returns a version of one key of a Secret, for example a hash of the key's content or the Secret's
	// resourceVersion. When the version changes, the cluster is identified again immediately. If SecretVersion is
	// nil, the cluster is identified again only after KeepID or KeepFailure.
	SecretVersion func(ctx context.Context, ref fleet.SecretRef) (string, error)
	// Peered lists the providers of the existing peerings, with the credentials with which the peerings were made. It
	// is called only when two offers have the same provider. If Peered is nil, the peerings are unknown.
	Peered func(ctx context.Context) ([]fleet.Provider, error)
	// Hub is the hub for which published offers are read. Default "default".
	Hub string
	// Now returns the current time. Default time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	o.Parallel = cmp.Or(o.Parallel, 8)
	o.PerOffer = cmp.Or(o.PerOffer, 5*time.Second)
	o.Wait = cmp.Or(o.Wait, 10*time.Second)
	o.KeepID = cmp.Or(o.KeepID, 10*time.Minute)
	o.Hub = cmp.Or(o.Hub, fleet.DefaultHub)
	o.KeepFailure = cmp.Or(o.KeepFailure, 30*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Resolved is the Catalog of one Source.
type Resolved struct {
	source   Source
	ids      *identities
	measured *measured
	options  Options

	lists singleflight.Group
	mu    sync.Mutex // guards last
	last  *listing   // nil before the source's first result
}

// Resolve returns a Catalog of the source's offers. The Catalog omits expired offers, identifies every cluster, and
// selects one of several offers of the same provider (claims.go). A process should use the same Catalog as long as it
// runs, because the Catalog caches the ids.
func Resolve(source Source, identifier Identifier, options Options) *Resolved {
	options = options.withDefaults()
	reader, _ := identifier.(PublishedReader)
	return &Resolved{source: source, options: options, ids: newIdentities(identifier, options),
		measured: &measured{reader: reader, hub: options.Hub, now: options.Now, seen: map[string]observedDocument{}}}
}

// Name returns the source's name.
func (r *Resolved) Name() string { return r.source.Name() }

// Offers implements Catalog.
func (r *Resolved) Offers(ctx context.Context) ([]fleet.Offer, []Problem, error) {
	claims, problems, err := r.claims(ctx)
	if err != nil {
		return nil, problems, err
	}
	return settle(ctx, claims, problems, r.options.Peered)
}

// listing is one result of Source.List.
type listing struct {
	offers   []fleet.Offer
	problems []Problem
	err      error
}

// list returns the source's offers. Until the source has returned a first result (offers or an error), list waits for
// the source until ctx ends. Later calls wait for at most renewalWait and then return the previous result, so that a
// source that hangs does not delay the offers of all sources.
func (r *Resolved) list(ctx context.Context) ([]fleet.Offer, []Problem, error) {
	r.mu.Lock()
	l := r.last
	r.mu.Unlock()
	flight := r.lists.DoChan("", func() (any, error) { return r.listSource(ctx), nil })
	var patience <-chan time.Time
	if l != nil {
		patience = time.After(renewalWait)
	}
	var late []Problem
	select {
	case done := <-flight:
		l = done.Val.(*listing)
	case <-patience:
		late = []Problem{NewProblem(r.source.Name(), "", "has not answered for %s: its last answer is used", renewalWait)}
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	offers := make([]fleet.Offer, len(l.offers))
	for i, o := range l.offers {
		offers[i] = CopyOffer(o)
	}
	return offers, slices.Concat(l.problems, late), l.err
}

// listSource lists the source's offers and stores the result in r.last. It continues when ctx ends, because the next
// call uses the result too.
func (r *Resolved) listSource(ctx context.Context) *listing {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedFor)
	defer cancel()
	var l listing
	l.offers, l.problems, l.err = r.source.List(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = &l
	return &l
}

// claims returns the offers that have not expired, with the ids that the offers' clusters report.
func (r *Resolved) claims(ctx context.Context) ([]claim, []Problem, error) {
	listed, problems, err := r.list(ctx)
	if err != nil {
		return nil, problems, fmt.Errorf("list offers of %s: %w", r.source.Name(), err)
	}
	now, current := r.options.Now(), listed[:0:0]
	for _, o := range listed {
		if o.Expires != nil && !now.Before(*o.Expires) {
			problems = append(problems, NewProblem(r.source.Name(), o.Name, "expired at %s; renew or remove it",
				o.Expires.UTC().Format(time.RFC3339)))
			continue
		}
		current = append(current, o)
	}
	ids, errs := r.identifyAll(ctx, current)
	if err := ctx.Err(); err != nil {
		return nil, problems, fmt.Errorf("identify providers of %s: %w", r.source.Name(), context.Cause(ctx))
	}
	claimant, _ := r.source.(Claimant)
	declares := claimant == nil || !claimant.Claims()
	var claims []claim
	for i, o := range current {
		if err := identified(o, ids[i], errs[i]); err != nil {
			problems = append(problems, NewProblem(r.source.Name(), o.Name, "%v", err))
			continue
		}
		declared := declares && o.Provider != ""
		o.Provider = ids[i]
		o.Epoch = Epoch(o)
		if o.ReadAt.IsZero() {
			o.ReadAt = now
		}
		claims = append(claims, claim{source: r.source.Name(), offer: o, declared: declared})
	}
	return claims, problems, nil
}

// identified returns an error if an offer's cluster could not be identified, or has reported an invalid or unexpected
// id.
func identified(o fleet.Offer, id string, err error) error {
	switch {
	case err != nil:
		return err
	case !fleet.ValidProviderID(id):
		return fmt.Errorf("its cluster reports the id %.80q, which is not a Liqo cluster id", id)
	case o.Provider != "" && o.Provider != id:
		return fmt.Errorf("declares provider %s, but its credentials lead to %s", o.Provider, id)
	default:
		return nil
	}
}

func (r *Resolved) identifyAll(ctx context.Context, offers []fleet.Offer) ([]string, []error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.options.Wait, errStillBusy)
	defer cancel()
	ids, errs := make([]string, len(offers)), make([]error, len(offers))
	var all sync.WaitGroup
	for i, o := range offers {
		all.Go(func() {
			if ids[i], errs[i] = r.ids.of(ctx, o.Credentials); errs[i] == nil && o.Measured {
				errs[i] = r.measured.complete(ctx, &offers[i])
			}
		})
	}
	all.Wait()
	return ids, errs
}
