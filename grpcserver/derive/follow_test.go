package derive

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
)

// file is a config file. A value in next means that the file has changed. A value in broken means that it has an
// error.
type file struct {
	next   *config.Config
	broken error
}

func (f *file) Hash() string { return "1" }

func (f *file) Changed() (config.Config, bool, error) {
	if f.next == nil {
		return config.Config{}, false, f.broken
	}
	return *f.next, true, f.broken
}

// The settings follow the config and the market. While the config is broken, the settings stay. When the config is
// repaired, the settings follow the changes that the market has made in the meantime.
func TestSettingsFollowConfigAndMarket(t *testing.T) {
	w := newWorld(offer("milan", "north", 2))
	var f file
	first, reload := w.groups().Follow(config.Config{NodeGroups: []config.NodeGroup{base("l", config.PerProvider)}}, &f)
	require.Equal(t, []string{"l-milan"}, ids(first))
	told := func() ([]string, bool) {
		s, changed, err := reload()
		require.Equal(t, f.broken, err)
		require.Equal(t, f.Hash(), s.Version)
		return ids(s.Specs), changed
	}
	_, isNew := told()
	require.False(t, isNew)

	w.Offers = append(w.Offers, offer("turin", "south", 1))
	f.broken = errors.New("broken")
	_, isNew = told()
	require.False(t, isNew, "the config is broken")
	f.broken = nil
	groups, isNew := told()
	require.True(t, isNew)
	require.Equal(t, []string{"l-milan", "l-turin"}, groups)
	_, isNew = told()
	require.False(t, isNew, "reported once")

	f.next = &config.Config{NodeGroups: []config.NodeGroup{base("s", config.PerProvider)}}
	groups, isNew = told()
	require.True(t, isNew)
	require.Equal(t, []string{"s-milan", "s-turin"}, groups)
}
