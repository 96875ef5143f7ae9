package discovery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/lru"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

var errStillBusy = errors.New("its provider is still being identified; the offer is not used before")

// identities caches the ids of the clusters to which credentials lead. An entry is valid for one version of the
// credentials and for a bounded time: KeepID, or KeepFailure if the identification failed. Failures are cached so
// that an unreachable provider does not delay every discovery by a full timeout. Concurrent calls for the same
// credentials share one identification.
type identities struct {
	identifier Identifier
	options    Options
	slots      chan struct{}
	flights    singleflight.Group
	known      *lru.Cache // identities, by the reference to their credentials
}

type identity struct {
	version string
	id      string
	err     error
	until   time.Time
}

func newIdentities(identifier Identifier, options Options) *identities {
	return &identities{
		identifier: identifier,
		options:    options,
		slots:      make(chan struct{}, options.Parallel),
		known:      lru.New(maxKnown),
	}
}

// renewalWait is the time for which a call waits for a new identification before it uses the expired cache entry. The
// bound prevents that an unreachable provider delays the offers of all providers.
const renewalWait = time.Second

// of returns the id of the cluster to which the credentials lead. It blocks until the id is known, the identification
// has failed, or ctx ends. If the cache has an expired entry, it blocks for at most renewalWait, and then returns the
// expired entry.
func (i *identities) of(ctx context.Context, credentials fleet.Credentials) (string, error) {
	version, err := i.version(ctx, credentials)
	if err != nil {
		return "", err
	}
	reference := referenceOf(credentials)
	last, fresh := i.cached(reference, version)
	if fresh {
		return last.id, last.err
	}
	// The identification continues when this caller's ctx ends, because other callers use its result too.
	flight := i.flights.DoChan(reference+" "+version, func() (any, error) {
		if known, ok := i.cached(reference, version); ok {
			return known.id, known.err
		}
		i.slots <- struct{}{}
		defer func() { <-i.slots }()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), i.options.PerOffer)
		defer cancel()
		id, err := i.identifier.Identify(ctx, credentials)
		switch {
		case err != nil && ctx.Err() != nil:
			err = fmt.Errorf("identify provider: no answer within %s: %w", i.options.PerOffer, err)
		case err == nil && id == "":
			err = errors.New("identify provider: the cluster has no id; is Liqo installed there?")
		}
		i.cache(reference, version, id, err)
		return id, err
	})
	var patience <-chan time.Time
	if !last.until.IsZero() {
		patience = time.After(renewalWait)
	}
	select {
	case done := <-flight:
		id, _ := done.Val.(string)
		return id, done.Err
	case <-patience:
		return last.id, last.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// cached returns the cached entry for this version of the credentials. Without such an entry it returns a zero
// identity. fresh reports whether the entry has not expired yet.
func (i *identities) cached(reference, version string) (last identity, fresh bool) {
	found, _ := i.known.Get(reference)
	last, _ = found.(identity)
	if last.version != version {
		return identity{}, false
	}
	return last, i.options.Now().Before(last.until)
}

// maxKnown is larger than the number of offers in any source. A smaller LRU cache would miss on every access, because
// each call reads all offers in the same order.
const maxKnown = 32768

func (i *identities) cache(reference, version, id string, err error) {
	keep := i.options.KeepID
	if err != nil {
		keep = i.options.KeepFailure
	}
	i.known.Add(reference, identity{version: version, id: id, err: err, until: i.options.Now().Add(keep)})
}

// version returns a fingerprint of the contents of the credentials. With it the cache can detect changes, and does
// not need to store the contents. version returns "" for a Secret when Options.SecretVersion is nil.
func (i *identities) version(ctx context.Context, c fleet.Credentials) (string, error) {
	switch {
	case c.KubeconfigFile != "":
		return fileVersion(c.KubeconfigFile)
	case c.SecretRef != nil && i.options.SecretVersion != nil:
		version, err := i.options.SecretVersion(ctx, *c.SecretRef)
		if err != nil {
			return "", fmt.Errorf("read credentials: %w", err)
		}
		return version, nil
	case c.SecretRef != nil:
		return "", nil
	default:
		return "", errors.New("the offer has no credentials; give kubeconfigFile or secretRef")
	}
}

const maxKubeconfig = 1 << 20

func fileVersion(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read kubeconfigFile: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, maxKubeconfig+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read kubeconfigFile: %w", err)
	case n > maxKubeconfig:
		return "", fmt.Errorf("read kubeconfigFile: %s is larger than 1 MiB; it is not a kubeconfig", path)
	case n == 0:
		return "", fmt.Errorf("read kubeconfigFile: %s is empty", path)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func referenceOf(c fleet.Credentials) string {
	b, err := json.Marshal(c)
	if err != nil { // cannot happen: Credentials holds only strings
		return fmt.Sprint(c)
	}
	return string(b)
}
