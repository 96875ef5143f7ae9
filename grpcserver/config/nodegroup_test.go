package config

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/golden"
)

// A node group in which every field is set gives a spec in which every field is set. A field that the translation
// omits would be zero.
func TestEveryFieldIsTranslated(t *testing.T) {
	complete := func(what any) {
		value := reflect.ValueOf(what)
		for _, f := range reflect.VisibleFields(value.Type()) {
			require.False(t, value.FieldByIndex(f.Index).IsZero(), "%s.%s", value.Type(), f.Name)
		}
	}
	full := golden.Filled[NodeGroup](t)
	complete(full)
	complete(full.spec())
	require.InDelta(t, 1.5, full.spec().MaxPrice, 0)
	require.Equal(t, full.Spending.Spending, *full.spec().Spending)
}

// A price limit for each node does not limit the price of all nodes together.
func TestPriceLimitPerNodeIsNoSumLimit(t *testing.T) {
	g := NodeGroup{Defaults: Defaults{Spending: &Spending{PerNode: ptr.To(2.0)}}}
	require.Nil(t, g.spec().Spending)
	require.InDelta(t, 2.0, g.spec().MaxPrice, 0)
	require.Zero(t, NodeGroup{}.spec().MaxPrice)
}
