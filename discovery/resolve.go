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

// Options tune Resolve. Zero values mean the defaults.
type Options struct {
	// Parallel bounds how many clusters are asked for their id at once, over all callers. Default 8.
	Parallel int
	// PerOffer bounds the identification of one cluster. Default 5s.
	PerOffer time.Duration
	// Wait bounds how long one call of Offers waits for identifications; those not done by then go on by themselves and
	// serve the next call. Default 10s.
	Wait time.Duration
	// KeepID is how long a cluster's id is believed without asking again. Default 10m.
	KeepID time.Duration
	// KeepFailure is how long a failed identification is not tried again. Default 30s.
	KeepFailure time.Duration
	// SecretVersion tells versions of a Secret's key apart, for example by a hash of its content or the Secret's
	// resourceVersion: a new version is identified at once. nil: Secrets are asked again after KeepID and KeepFailure.
	SecretVersion func(ctx context.Context, ref fleet.SecretRef) (string, error)
	// Peered lists the providers that we are peered with, by the credentials that the peerings were made with. It is asked
	// only when two offers are of one provider. nil: none is known.
	Peered func(ctx context.Context) ([]fleet.Provider, error)
	// Hub is the installation for which providers measure what they offer. Default "default".
	Hub string
	// Now is the clock. Default time.Now.
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
	last  *listing   // nil before the source has answered
}

// Resolve makes a Catalog of a Source: it leaves out expired offers, asks every cluster for its id, and settles which
// offer serves of a provider that is offered more than once (claims.go). Keep one for the life of the process: it
// remembers the ids.
func Resolve(source Source, identifier Identifier, options Options) *Resolved {
	options = options.withDefaults()
	reader, _ := identifier.(PublishedReader)
	return &Resolved{source: source, options: options, ids: newIdentities(identifier, options),
		measured: &measured{reader: reader, hub: options.Hub, now: options.Now, seen: map[string]sighting{}}}
}

// Name is the source's name.
func (r *Resolved) Name() string { return r.source.Name() }

// Offers implements Catalog.
func (r *Resolved) Offers(ctx context.Context) ([]fleet.Offer, []Problem, error) {
	claims, problems, err := r.claims(ctx)
	if err != nil {
		return nil, problems, err
	}
	return settle(ctx, claims, problems, r.options.Peered)
}

// listing is what a source has answered.
type listing struct {
	offers   []fleet.Offer
	problems []Problem
	err      error
}

// list asks the source. Once it has answered, an error too, a later answer is waited for as briefly as a cluster's that
// is asked again: a source that hangs must not hold up the others' offers each time. Its last answer serves meanwhile.
func (r *Resolved) list(ctx context.Context) ([]fleet.Offer, []Problem, error) {
	r.mu.Lock()
	l := r.last
	r.mu.Unlock()
	flight := r.lists.DoChan("", func() (any, error) { return r.ask(ctx), nil })
	var patience <-chan time.Time
	if l != nil {
		patience = time.After(askedAgainFor)
	}
	var late []Problem
	select {
	case done := <-flight:
		l = done.Val.(*listing)
	case <-patience:
		late = []Problem{NewProblem(r.source.Name(), "", "has not answered for %s: what it said last serves", askedAgainFor)}
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	offers := make([]fleet.Offer, len(l.offers))
	for i, o := range l.offers {
		offers[i] = CopyOffer(o)
	}
	return offers, slices.Concat(l.problems, late), l.err
}

// ask asks the source, also when the one who began it has gone: the answer serves the next call.
func (r *Resolved) ask(ctx context.Context) *listing {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sharedFor)
	defer cancel()
	var l listing
	l.offers, l.problems, l.err = r.source.List(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = &l
	return &l
}

// claims are the offers as their clusters identify themselves.
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

// identified is what is wrong with how an offer's cluster has identified itself.
func identified(o fleet.Offer, id string, err error) error {
	switch {
	case err != nil:
		return err
	case !fleet.ValidProviderID(id):
		return fmt.Errorf("its cluster calls itself %.80q, which is no Liqo cluster id", id)
	case o.Provider != "" && o.Provider != id:
		return fmt.Errorf("says it is of provider %s, but its credentials lead to %s", o.Provider, id)
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
