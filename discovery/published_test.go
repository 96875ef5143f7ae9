package discovery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// publishes is a cluster in which an agent publishes a document.
type publishes struct {
	mu       sync.Mutex
	document string
	err      error
	asked    int
}

func (p *publishes) Identify(context.Context, fleet.Credentials) (string, error) { return "milan", nil }

func (p *publishes) Published(_ context.Context, _ fleet.Credentials, name, key string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	if name != discovery.PublishedName || key != "edge" {
		return "", fmt.Errorf("the request was for %s/%s", name, key)
	}
	return p.document, p.err
}

func (p *publishes) set(document string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.document, p.err = document, err
}

// written is a source with one offer, in the form in which users write it.
type written struct{ offer fleet.Offer }

func (written) Name() string { return "file" }

func (w written) List(context.Context) ([]fleet.Offer, []discovery.Problem, error) {
	return []fleet.Offer{w.offer}, nil, nil
}

func published(cpu string, renewal int) string {
	return fmt.Sprintf(`{"name": "milan", "provider": "milan", "credentials": {}, "lendable": {"cpu": %q, "memory": "8Gi",
		"pods": "110"}, "labels": {"country": "it"}, "price": 0.5, "class": "liqo-autoscaler", "laterKey": 1,
		"ttlSeconds": 60, "renewed": "2026-11-23T10:00:%02dZ"}`, cpu, renewal)
}

func TestMeasuredOfferIsPublishedByTheProvider(t *testing.T) {
	doc, err := discovery.Parse([]byte("offers: [{name: milan, credentials: {kubeconfigFile: k}, lendable: measured}]"))
	require.NoError(t, err)
	provider, now := &publishes{document: published("4", 1)}, time.Now()
	offer := doc.Offers[0].Offer()
	offer.Credentials = fleet.Credentials{SecretRef: &fleet.SecretRef{Namespace: "a", Name: "b"}}
	catalog := discovery.Resolve(written{offer}, provider, discovery.Options{Hub: "edge",
		Now: func() time.Time { return now }})
	ask := func() (cpu, problem string) {
		t.Helper()
		offers, problems, err := catalog.Offers(t.Context())
		require.NoError(t, err)
		if len(offers) == 0 {
			require.Len(t, problems, 1)
			return "", problems[0].Message
		}
		require.Empty(t, problems)
		require.Equal(t, map[string]string{"country": "it"}, offers[0].Labels)
		require.Equal(t, 0.5, offers[0].Price)
		require.Equal(t, "liqo-autoscaler", offers[0].Class)
		return offers[0].Lendable.Cpu().String(), ""
	}
	expect := func(cpu, problem string) {
		t.Helper()
		gotCPU, gotProblem := ask()
		require.Equal(t, cpu, gotCPU)
		require.Contains(t, gotProblem, problem)
	}
	expect("4", "")
	provider.set(published("2", 2), nil)
	expect("2", "")

	// The agent is killed. The agent's document expires by our clock, and not by the agent's clock.
	now = now.Add(59 * time.Second)
	expect("2", "")
	now = now.Add(time.Second)
	expect("", "its provider's agent has not renewed it for 60 s: is it running?")
	provider.set(published("3", 3), nil)
	expect("3", "")

	// The provider does not answer. The last document stays valid, and only some of the lists send a request to the
	// provider.
	provider.set("", errors.New("connection refused"))
	asked := provider.asked
	for range 5 {
		expect("3", "")
	}
	require.Equal(t, asked+1, provider.asked)
	now = now.Add(30 * time.Second)
	expect("3", "")
	require.Equal(t, asked+2, provider.asked)
	now = now.Add(30 * time.Second)
	expect("", "has not renewed it")

	// A document that is not an offer withdraws the last offer.
	provider.set(published("1", 4), nil)
	now = now.Add(time.Minute)
	expect("1", "")
	provider.set("{}", nil)
	expect("", "read the offer that its provider publishes: the published offer's ttlSeconds is 0")
}

// Fields in the consumer's offer override the fields that the provider publishes.
func TestConsumersFieldsOverridePublishedFields(t *testing.T) {
	offer := fleet.Offer{Name: "milan", Measured: true, Price: 2, Currency: "EUR",
		Labels: map[string]string{"country": "ch"}, MaxNodes: 3, Class: "other",
		Credentials: fleet.Credentials{SecretRef: &fleet.SecretRef{Namespace: "a", Name: "b"}}}
	catalog := discovery.Resolve(written{offer}, &publishes{document: published("4", 1)}, discovery.Options{Hub: "edge"})
	offers, problems, err := catalog.Offers(t.Context())
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Equal(t, "4", offers[0].Lendable.Cpu().String())
	require.Equal(t, offer.Price, offers[0].Price)
	require.Equal(t, offer.Currency, offers[0].Currency)
	require.Equal(t, offer.Labels, offers[0].Labels)
	require.Equal(t, offer.MaxNodes, offers[0].MaxNodes)
	require.Equal(t, offer.Class, offers[0].Class)
}

// onlyIdentifies is a backend that supports only Identify.
type onlyIdentifies struct{}

func (onlyIdentifies) Identify(context.Context, fleet.Credentials) (string, error) {
	return "milan", nil
}

func TestMeasuredOfferNeedsABackendThatReads(t *testing.T) {
	offer := fleet.Offer{Name: "milan", Measured: true,
		Credentials: fleet.Credentials{SecretRef: &fleet.SecretRef{Namespace: "a", Name: "b"}}}
	offers, problems, err := discovery.Resolve(written{offer}, onlyIdentifies{}, discovery.Options{}).Offers(t.Context())
	require.NoError(t, err)
	require.Empty(t, offers)
	require.Contains(t, problems[0].Message, "use --backend liqo")
}

// A provider may publish any content, so the source checks the content like an offer from an unknown writer.
func TestPublishedContentIsChecked(t *testing.T) {
	change := func(key string, value any) string {
		var doc map[string]any
		require.NoError(t, json.Unmarshal([]byte(published("4", 1)), &doc))
		doc[key] = value
		raw, err := json.Marshal(doc)
		require.NoError(t, err)
		return string(raw)
	}
	for fault, document := range map[string]string{
		"the published document is not an offer":    "offers: []",
		"the published offer has 65537 bytes":       strings.Repeat(" ", 65537),
		"the published offer's ttlSeconds is -1":    change("ttlSeconds", -1),
		"the published offer's ttlSeconds is 86401": change("ttlSeconds", 86401),
		"lendable.cpu: must not be negative": change("lendable",
			map[string]string{"cpu": "-1", "memory": "1", "pods": "1"}),
		"lendable.pods: is missing": change("lendable", map[string]string{"cpu": "1", "memory": "1"}),
		"largestNodes[1].cpu: must not be negative": change("largestNodes",
			[]map[string]string{{"cpu": "1"}, {"cpu": "-1"}}),
		"largestNodes":                  change("largestNodes", make([]map[string]string, 5)),
		"prices.cpu":                    change("prices", map[string]float64{"cpu": 1e9}),
		"labels":                        change("labels", map[string]string{"-": "x"}),
		"an amount has too many digits": change("lendable", map[string]string{"cpu": "1e100000000"}),
	} {
		offer := fleet.Offer{Name: "milan", Measured: true,
			Credentials: fleet.Credentials{SecretRef: &fleet.SecretRef{Namespace: "a", Name: "b"}}}
		offers, problems, err := discovery.Resolve(written{offer}, &publishes{document: document},
			discovery.Options{Hub: "edge"}).Offers(t.Context())
		require.NoError(t, err)
		require.Empty(t, offers, fault)
		require.Contains(t, problems[0].Message, fault)
	}
}

func TestLendableMustBeAmountsOrMeasured(t *testing.T) {
	for offer, fault := range map[string]string{
		"lendable: measured": "",
		"lendable: measurd":  "lendable",
		"measured: true":     "measured: unknown field",
		"labels: {}":         "lendable: is missing",
	} {
		_, err := discovery.Parse([]byte("offers: [{name: a, credentials: {kubeconfigFile: k}, " + offer + "}]"))
		if fault == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, fault)
	}
	_, err := discovery.Parse([]byte("lendable: measured"))
	require.ErrorContains(t, err, "lendable: unknown field", "a file is a list of offers")
}
