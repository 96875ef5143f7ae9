package derive

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// The settings change with the config and with the market. While the config is broken nothing changes, and what the
// market has changed meanwhile is told afterwards.
func TestSettingsFollowConfigAndMarket(t *testing.T) {
	w := newWorld(offer("milan", "north", 2))
	var next grpcserver.Settings
	var changed bool
	var broken error
	first, reload := w.groups().Follow(grpcserver.Settings{Specs: []fleet.GroupSpec{base("l", PerProvider)}},
		func() (grpcserver.Settings, bool, error) { return next, changed, broken })
	require.Equal(t, []string{"l-milan"}, ids(first))
	told := func() ([]string, bool) {
		s, changed, err := reload()
		require.Equal(t, broken, err)
		return ids(s.Specs), changed
	}
	_, isNew := told()
	require.False(t, isNew)

	w.Offers = append(w.Offers, offer("turin", "south", 1))
	broken = errors.New("broken")
	_, isNew = told()
	require.False(t, isNew, "the config is broken")
	broken = nil
	groups, isNew := told()
	require.True(t, isNew)
	require.Equal(t, []string{"l-milan", "l-turin"}, groups)
	_, isNew = told()
	require.False(t, isNew, "told once")

	next, changed = grpcserver.Settings{Specs: []fleet.GroupSpec{base("s", PerProvider)}}, true
	groups, isNew = told()
	require.True(t, isNew)
	require.Equal(t, []string{"s-milan", "s-turin"}, groups)
}
