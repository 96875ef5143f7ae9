package discovery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/jsonguard"
)

// PublishedName is the name of a ConfigMap on the provider, in the consumer's tenant namespace. Without a discovery
// server, the provider's agent publishes its offers in this ConfigMap, with one key for each hub of the consumer.
const PublishedName = "liqo-autoscaler-offer"

// Published is the document that an agent publishes to one hub.
type Published struct {
	Spec
	Contract
	// TTLSeconds is the time from the last renewal of the offer until the offer expires.
	TTLSeconds int64 `json:"ttlSeconds"`
	// Renewed is the time of the last renewal, by the agent's clock. Readers only check whether Renewed has changed,
	// because clocks may differ.
	Renewed time.Time `json:"renewed"`
}

// PublishedReader reads the document that a provider has published for this cluster. The credentials select the
// provider. name is the name of the ConfigMap, and key is the key of the document in the ConfigMap.
// activities/backend/liqo implements PublishedReader.
type PublishedReader interface {
	Published(ctx context.Context, credentials fleet.Credentials, name, key string) (document string, err error)
}

// These constants bound a published document and the time to read it.
const (
	maxPublished        = 64 << 10 // bytes
	maxPublishedTTL     = 24 * 60 * 60
	askPublished        = 2 * time.Second
	retryPublishedAfter = 10 * time.Second
)

// measured completes offers with the values that providers measure and publish.
type measured struct {
	reader PublishedReader // nil if the backend cannot read published documents
	hub    string
	now    func() time.Time

	mu   sync.Mutex
	seen map[string]observedDocument // by credentials
}

// observedDocument is a published document, with the time at which this process first read it.
type observedDocument struct {
	document string
	at       time.Time
	offer    Published
	// err is the error of the last read.
	err    error
	readAt time.Time
}

func (s observedDocument) expired(now time.Time) bool {
	return now.Sub(s.at) >= time.Duration(s.offer.TTLSeconds)*time.Second
}

// complete sets fields of the offer. The values are from the document that the offer's provider publishes. A
// published document is valid until its TTL has passed without a renewal, even if reads fail in the meantime.
// complete makes at most one request, and blocks for at most two seconds.
func (m *measured) complete(ctx context.Context, o *fleet.Offer) error {
	if m.reader == nil {
		return errors.New("its lendable is measured, which needs a real provider: use --backend liqo")
	}
	s := m.readDocument(ctx, o)
	switch {
	case s.document == "" && s.err != nil:
		return fmt.Errorf("read the offer that its provider publishes: %w", s.err)
	case s.expired(m.now()):
		return fmt.Errorf("its provider's agent has not renewed it for %d s: is it running?", s.offer.TTLSeconds)
	}
	p := s.offer.Spec.Offer()
	o.Lendable, o.MaxNodes, o.Class = p.Lendable, cmp.Or(o.MaxNodes, p.MaxNodes), cmp.Or(o.Class, p.Class)
	if o.LargestNodes == nil {
		o.LargestNodes = p.LargestNodes
	}
	if o.Labels == nil {
		o.Labels = p.Labels
	}
	if o.Price == 0 && len(o.Prices) == 0 {
		o.Price, o.Prices, o.Currency = p.Price, p.Prices, p.Currency
	}
	return nil
}

// readDocument reads the published document. If this fails, it returns the last document. After a failure it makes no
// request until retryPublishedAfter has passed, so that an unreachable provider does not delay every choice.
func (m *measured) readDocument(ctx context.Context, o *fleet.Offer) observedDocument {
	key := referenceOf(o.Credentials)
	m.mu.Lock()
	last := m.seen[key]
	m.mu.Unlock()
	if last.err != nil && m.now().Sub(last.readAt) < retryPublishedAfter {
		return last
	}
	ctx, cancel := context.WithTimeout(ctx, askPublished)
	defer cancel()
	document, err := m.reader.Published(ctx, o.Credentials, PublishedName, m.hub)
	now := last
	now.err, now.readAt = err, m.now()
	if err == nil && document != last.document {
		now = observedDocument{document: document, at: m.now(), readAt: m.now()}
		if now.offer, now.err = parsePublished(document); now.err != nil {
			now.document = "" // the agent has withdrawn the document, or the document is not a valid offer
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[key] = now
	return now
}

// parsePublished decodes and validates an untrusted document. It accepts unknown keys, because a later version of the
// agent may write them.
func parsePublished(document string) (Published, error) {
	var p Published
	if len(document) > maxPublished {
		return p, fmt.Errorf("the published offer has %d bytes, more than %d", len(document), maxPublished)
	}
	short, err := io.ReadAll(jsonguard.New(strings.NewReader(document), jsonguard.Limits{}))
	if err == nil && string(short) != document {
		return p, errors.New("the published document is not an offer: an amount has too many digits")
	}
	if err == nil {
		err = ContractOf(short).VersionFaults().Err()
	}
	if err == nil {
		err = json.Unmarshal(short, &p)
	}
	if err != nil {
		return p, fmt.Errorf("the published document is not an offer: %w", err)
	}
	if p.TTLSeconds < 1 || p.TTLSeconds > maxPublishedTTL {
		return p, fmt.Errorf("the published offer's ttlSeconds is %d, not between 1 and %d", p.TTLSeconds, maxPublishedTTL)
	}
	p.Measured, p.Network, p.VirtualKubelet, p.Expires = false, nil, "", nil
	p.Credentials = CredentialsSpec{KubeconfigFile: "the consumer's own"}
	if err := p.Check(); err != nil {
		return p, fmt.Errorf("the published document is not an offer: %w", err)
	}
	return p, nil
}
