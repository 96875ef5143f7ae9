package discovery_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// fixed is a catalog with fixed answers.
type fixed struct {
	name     string
	offers   []fleet.Offer
	problems []discovery.Problem
	err      error
}

func (f fixed) Name() string { return f.name }

func (f fixed) Offers(context.Context) ([]fleet.Offer, []discovery.Problem, error) {
	return f.offers, f.problems, f.err
}

func of(name, provider string) fleet.Offer {
	o := offer(name)
	o.Provider = provider
	return o
}

func TestCatalogsAreMerged(t *testing.T) {
	down := fixed{name: "api", err: errors.New("no route")}
	file := fixed{
		name: "file", offers: []fleet.Offer{of("b", "rome"), of("c", "milan")},
		problems: []discovery.Problem{{Source: "file", Offer: "x", Message: "expired"}},
	}
	for name, c := range map[string]struct {
		catalogs []discovery.NamedCatalog
		offers   []string
		problems []string
		err      string
	}{
		"none": {offers: []string{}, problems: []string{}},
		"disjoint": {
			catalogs: []discovery.NamedCatalog{file, fixed{name: "secrets", offers: []fleet.Offer{of("a", "turin")}}},
			offers:   []string{"a=turin", "b=rome", "c=milan"}, problems: []string{"file: offer x: expired"},
		},
		"a provider in two": {
			catalogs: []discovery.NamedCatalog{file, fixed{name: "secrets", offers: []fleet.Offer{of("a", "milan"),
				of("d", "turin")}}},
			offers: []string{"b=rome", "d=turin"},
			problems: []string{
				"file: offer c: is of provider milan, like offer secrets/a: none is used until one declares provider: milan",
				"file: offer x: expired",
				"secrets: offer a: is of provider milan, like offer file/c: none is used until one declares provider: milan",
			},
		},
		"one is down": {
			catalogs: []discovery.NamedCatalog{down, file},
			offers:   []string{"b=rome", "c=milan"}, problems: []string{"api: no route", "file: offer x: expired"},
		},
		"all are down": {catalogs: []discovery.NamedCatalog{down, down}, err: "no route"},
	} {
		t.Run(name, func(t *testing.T) {
			offers, problems, err := discovery.Merge(c.catalogs...).Offers(t.Context())
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.offers, names(offers))
			require.Equal(t, c.problems, texts(problems))
		})
	}
}
