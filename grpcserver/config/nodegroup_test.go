package config

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/golden"
)

// Every field of the resulting spec comes from the node group: a field that the translation forgets is zero.
func TestTranslationIsWhole(t *testing.T) {
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

// A price limit for each node does not limit the sum of all nodes.
func TestSpendingOfEachNodeAlone(t *testing.T) {
	g := NodeGroup{Defaults: Defaults{Spending: &Spending{PerNode: ptr.To(2.0)}}}
	require.Nil(t, g.spec().Spending)
	require.InDelta(t, 2.0, g.spec().MaxPrice, 0)
	require.Zero(t, NodeGroup{}.spec().MaxPrice)
}
