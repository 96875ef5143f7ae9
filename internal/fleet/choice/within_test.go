package choice_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
)

// No node is created at a price above its group's limit. An offer without a price counts as free of charge.
func TestChooseStaysWithinTheSpendingLimit(t *testing.T) {
	s := &fleet.InstanceSpec{ID: "edge", Shape: amounts("cpu", "2")}
	offers := []choice.Candidate{candidate("cheap", 1), candidate("dear", 3), candidate("unknown", 0)}
	offers[0].Offer.MaxNodes, offers[0].Nodes = 1, 1
	require.Equal(t, "unknown", choice.Choose(*s, offers, nil, choice.Rank{}, chooseAt).Chosen)
	s.MaxPrice = 2
	d := choice.Choose(*s, offers, []string{"unknown"}, choice.Rank{}, chooseAt)
	require.Empty(t, d.Chosen)
	require.Equal(t, map[string]int{"spending": 1, "maxNodes": 1, "refused": 1}, d.Counts)
	require.Contains(t, d.Assessments[1].Reason+d.Assessments[0].Reason+d.Assessments[2].Reason,
		"a node costs 3 USD an hour there, and spending allows 2")
	require.True(t, d.Full, "the cheap one may have room later")

	offers[2] = candidate("third", 1.0/3)
	s.MaxPrice = 0.333333 // a third of 1, in millionths
	require.Equal(t, "third", choice.Choose(*s, offers, nil, choice.Rank{}, chooseAt).Chosen, "compared as it is counted")
}
