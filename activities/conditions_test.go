package activities_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// A worker reports the results of its last round only for a limited time, because another worker may have run newer
// rounds.
func TestConditionsExpire(t *testing.T) {
	of := map[string]string{"milan": "Silent"}
	orphans := []fleet.Orphan{{Attempt: attempt("a-t0-1"), UID: "slice"}}
	c := &activities.Conditions{}
	require.Nil(t, c.Of(noon), "no round yet")
	require.Nil(t, c.Orphans(noon))
	c.Set(of, orphans, noon)
	for after, want := range map[time.Duration]struct{ of, orphans bool }{
		0:                  {true, true},
		2 * time.Minute:    {true, true},
		2*time.Minute + 1:  {false, true},
		15 * time.Minute:   {false, true},
		15*time.Minute + 1: {},
	} {
		now := noon.Add(after)
		require.Equal(t, want.of, c.Of(now) != nil, "after %s", after)
		require.Equal(t, want.orphans, c.Orphans(now) != nil, "after %s", after)
	}
	c.Of(noon)["milan"], c.Orphans(noon)[0].UID = "changed by a reader", "changed by a reader"
	require.Equal(t, map[string]string{"milan": "Silent"}, c.Of(noon))
	require.Equal(t, "slice", c.Orphans(noon)[0].UID)
	c.Set(map[string]string{}, nil, noon.Add(time.Hour))
	require.Empty(t, c.Of(noon.Add(time.Hour)))
	require.Empty(t, c.Orphans(noon.Add(time.Hour)))
}
