package observer_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
)

func (h *hub) Volumes(context.Context) (map[string][]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.claims), h.fails["volumes"]
}

func (h *hub) Keep(_ context.Context, at fleet.Attempt, kept bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := range h.found {
		if h.found[n].Attempt.ObjectName() == at.ObjectName() {
			h.found[n].Kept = kept
		}
	}
	return h.fails["keep"]
}

// withTwo returns a hub with two nodes on milan.
func withTwo() *hub {
	h := newHub().with([]fleet.InstanceView{row("a-t0-1", fleet.Ready), row("a-t0-2", fleet.Ready)}, "lca-a-t0-1-1",
		"lca-a-t0-2-1")
	h.found = []fleet.Found{whole(attempt("a-t0-2")), whole(attempt("a-t0-1"))}
	h.claims = map[string][]string{"milan": {"shop/data-1", "shop/data-0"}, "rome": {"shop/other"}}
	return h
}

// kept returns the names of the Nodes with our annotation.
func (h *hub) kept() (names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.found {
		if f.Kept {
			names = append(names, f.Attempt.ObjectName())
		}
	}
	return names
}

// While a provider has claims, the observer keeps one of its Nodes and reports this to the Node's group. When the
// Node's instance is released, the observer keeps another Node. When the claims are gone, it keeps none. When it cannot
// list the volumes, the annotations stay.
func TestOneNodeIsKeptForVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := withTwo()
		o := h.observer()
		o.Every, o.Kept = time.Hour, &observer.Kept{}
		leads(t, o, func(next func() error) {
			require.Equal(t, []string{"lca-a-t0-1-1"}, h.kept())
			require.Equal(t, []string{"a-t0-1"}, *h.rows["group/a"].Keeps)
			require.Equal(t, []observer.KeptNode{{Provider: "milan", Group: "a", Node: "lca-a-t0-1-1", Claims: 2,
				Claim: "shop/data-0"}}, o.Kept.Nodes())

			h.between(func() { h.groups["a"].Instances[0].Kept = true })
			require.NoError(t, next())
			require.Nil(t, h.rows["group/a"].Keeps, "it is as published")

			h.between(func() { h.claims, h.fails["volumes"] = nil, errors.New("forbidden") })
			require.NoError(t, next())
			require.Equal(t, []string{"lca-a-t0-1-1"}, h.kept())
			require.Nil(t, h.rows["group/a"].Keeps)

			h.between(func() {
				delete(h.fails, "volumes")
				h.claims = map[string][]string{"milan": {"shop/data-1"}}
				h.groups["a"].Instances[0].State = fleet.StateDeleting
			})
			require.NoError(t, next())
			require.Equal(t, []string{"lca-a-t0-2-1"}, h.kept())
			require.Equal(t, []string{"a-t0-2"}, *h.rows["group/a"].Keeps)

			h.between(func() { h.claims = nil; h.groups["a"].Instances[1].Kept = true })
			require.NoError(t, next())
			require.Empty(t, h.kept())
			require.Empty(t, *h.rows["group/a"].Keeps)
			require.Empty(t, o.Kept.Nodes())
		})
	})
}

// A Node that another party keeps counts as kept, and the observer does not change it. The observer keeps no Node for a
// group that deletes volumes.
func TestNodesKeptByOthersCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := withTwo()
		h.found[0].KeptByOthers = true
		o := h.observer()
		o.Every, o.Kept = time.Hour, &observer.Kept{}
		leads(t, o, func(next func() error) {
			require.Empty(t, h.kept())
			require.Equal(t, []string{"a-t0-2"}, *h.rows["group/a"].Keeps)
			h.between(func() { h.found[0].KeptByOthers = false; h.groups["a"].Spec.Volumes = fleet.DeleteVolumes })
			require.NoError(t, next())
			require.Empty(t, h.kept())
			require.Empty(t, o.Kept.Nodes())
		})
	})
}
