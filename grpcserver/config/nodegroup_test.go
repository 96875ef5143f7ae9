package config

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// full sets every field of a node group.
var full = NodeGroup{
	ID: "a", Sizes: []Size{{Name: "s"}}, Provider: "milan", MinPerGroup: 1, PriceFactor: 2, Defaults: Defaults{
		Min: 1, Max: 2, Shape: corev1.ResourceList{"cpu": {}}, Nodes: fleet.NodesMachine,
		Labels: map[string]string{"tier": "burst"}, Taints: []corev1.Taint{{Key: "burst"}}, GroupTaint: "NoSchedule",
		Selector: &metav1.LabelSelector{}, Per: PerProvider, Currency: "EUR", Selection: &fleet.Selection{Warm: 1},
		Standby: 3, Budgets: fleet.Budgets{}.WithDefaults(),
		Spending: &Spending{PerNode: ptr.To(1.5), Spending: money.Spending{Hourly: money.SpendingLimit{Hard: ptr.To(4.0)}}},
	},
}

// Every field of the group in force comes from the node group: one that the translation forgets is zero.
func TestTranslationIsWhole(t *testing.T) {
	complete := func(what any) {
		value := reflect.ValueOf(what)
		for _, f := range reflect.VisibleFields(value.Type()) {
			require.False(t, value.FieldByIndex(f.Index).IsZero(), "%s.%s", value.Type(), f.Name)
		}
	}
	complete(full)
	complete(full.spec())
	require.InDelta(t, 1.5, full.spec().MaxPrice, 0)
	require.Equal(t, full.Spending.Spending, *full.spec().Spending)
}

// A price for each node alone bounds nothing of what all cost together.
func TestSpendingOfEachNodeAlone(t *testing.T) {
	g := NodeGroup{Defaults: Defaults{Spending: &Spending{PerNode: ptr.To(2.0)}}}
	require.Nil(t, g.spec().Spending)
	require.InDelta(t, 2.0, g.spec().MaxPrice, 0)
	require.Zero(t, NodeGroup{}.spec().MaxPrice)
}
