package fleet_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// A group remembers the provider and the reason of each attempt, and the reasons of failures. It stores each entry
// once, keeps only the last entries, and cuts long texts. The entries stay after a new epoch.
func TestChoicesAndFailuresAreRemembered(t *testing.T) {
	l := ledger(t)
	require.NoError(t, operate(l, fleet.Grow, 1))
	sequence := 0
	tell := func(now time.Time, v fleet.View) {
		sequence++
		e := l.Entries[len(l.Entries)-1]
		v.Instance, v.Generation, v.Sequence = e.Name, e.Driver.Generation, sequence
		if v.Attempt > 0 {
			v.Offer = &fleet.Offer{Name: "m", Provider: fmt.Sprintf("p%d", v.Attempt)}
		}
		l.Step(fleet.GroupInput{Views: []fleet.View{v, v}}, now)
	}
	l.Step(fleet.GroupInput{}, t0)
	tell(t0, fleet.View{Phase: fleet.Peering, Attempt: 1, Reason: "fits at price 1 USD"})
	tell(t0, fleet.View{Phase: fleet.Joining, Attempt: 1, Reason: "not asked again"})
	tell(t0.Add(1500*time.Millisecond), fleet.View{Phase: fleet.Peering, Attempt: 2, Reason: strings.Repeat("é", 500)})
	tell(t0.Add(2*time.Second), fleet.View{Phase: fleet.Failed, Attempt: 2, End: fleet.EndFinal,
		Failure: fleet.NewFailure(fleet.CodeNoOffer, "", "", "nobody")})
	require.Len(t, l.Choices, 3)
	require.Equal(t, fleet.Choice{At: t0.UTC(), Instance: booked(1), Attempt: 1, Provider: "p1",
		Reason: "fits at price 1 USD"}, l.Choices[0])
	require.Equal(t, "p2", l.Choices[1].Provider)
	require.Equal(t, t0.Add(time.Second).UTC(), l.Choices[1].At)
	require.Equal(t, 160, len([]rune(l.Choices[1].Reason)))
	require.Equal(t, fleet.Choice{At: t0.Add(2 * time.Second).UTC(), Instance: booked(1), Attempt: 2,
		Reason: "NoOffer: nobody"}, l.Choices[2])

	require.NoError(t, operate(l, fleet.Grow, 1))
	l.Step(fleet.GroupInput{}, t0)
	for n := range 60 {
		tell(t0, fleet.View{Phase: fleet.Peering, Attempt: n + 1, Reason: strings.Repeat("界", 500)})
	}
	require.Len(t, l.Choices, fleet.Choices)
	require.Equal(t, []int{11, 60}, []int{l.Choices[0].Attempt, l.Choices[49].Attempt})
	raw, err := json.Marshal(l.Choices)
	require.NoError(t, err)
	require.Less(t, len(raw), 40<<10)

	kept := l.Choices
	e := l.Entries[len(l.Entries)-1]
	l.Step(fleet.GroupInput{Views: []fleet.View{{Instance: e.Name, Phase: fleet.Peering, // its history was reverted
		Generation: fleet.Generation{Epoch: l.Epoch, Count: l.Starts + 1}}}}, t0)
	require.True(t, l.Recovering)
	require.Equal(t, kept, l.Choices)
}
