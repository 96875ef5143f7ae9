package grpcserver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/conformance"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// The server, with groups on real ledgers, passes every rule of package conformance. Other tests cover our own ids,
// limits and workflows.
func TestConformance(t *testing.T) {
	offered := func(f *fakeGroups) *Server {
		m := &fakeMarket{}
		m.nodes("milan", 9, 0.5)
		s, err := New(Options{Groups: f, Logger: quiet, Market: m.current,
			Specs: []fleet.GroupSpec{spec("cpu", 0, 20), spec("gpu", 0, 20)}})
		require.NoError(t, err)
		require.NoError(t, s.Start(t.Context()))
		return s
	}
	for name, server := range map[string]func(f *fakeGroups) *Server{
		"config":  func(f *fakeGroups) *Server { return loaded(t, f, spec("cpu", 1, 8), spec("gpu", 0, 5)) },
		"offered": offered,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			c := newClient(t, server(f))
			require.NoError(t, c.increase("cpu", 2))
			require.NoError(t, c.increase("gpu", 3))
			f.ready("cpu", 2)
			f.ready("gpu", 1)
			f.change("gpu", func(l *fleet.Ledger) {
				l.Entries[1].Phase, l.Entries[1].Failure = fleet.Failed, fleet.NewFailure(fleet.CodeNoOffer, "", "", "none")
			})
			require.NoError(t, c.refresh())
			began := time.Now()
			results, err := conformance.Check(t.Context(), c.CloudProviderClient, conformance.Options{Group: "cpu",
				Second: "gpu", Timeout: time.Minute, Settle: time.Millisecond, Clock: func() time.Time { return began }})
			require.NoError(t, err)
			require.Len(t, results, len(conformance.Rules()))
			for _, r := range results {
				require.Equal(t, conformance.Passed, r.Outcome, "%s: %s: %s", r.ID, r.Demands, r.Seen)
				if r.ID == "increase-given-up" { // the server refuses a call that has less than fleet.GiveUpBefore left
					require.Equal(t, "3 of 3 calls were abandoned", r.Seen)
				}
			}
		})
	}
}
