package activities_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func TestReportSendsViewsHoldsAndReports(t *testing.T) {
	broken := errors.New("no answer")
	in := activities.ReportInput{
		Group: "a", View: &fleet.View{Instance: "a-t0-1"}, Provider: "milan",
		Holds: []fleet.HoldRequest{{Kind: fleet.HoldRelease, Key: "lca-a-t0-1-1"}}, Report: &fleet.PeeringReport{Run: 2},
	}
	holds := activities.ReportInput{Provider: "milan", Holds: in.Holds}
	report := activities.ReportInput{Provider: "milan", Report: in.Report}
	for name, c := range map[string]struct {
		in    activities.ReportInput
		fails map[string]error
		want  error
	}{
		"all":                       {in: in},
		"the view is not delivered": {in: in, fails: map[string]error{"a": broken}, want: broken},
		"the group does not run": {
			in: in, fails: map[string]error{"a": fleet.ErrNotRunning}, want: fleet.ErrNotRunning,
		},
		"the release is not delivered":     {in: holds, fails: map[string]error{"milan": broken}, want: broken},
		"the report is not delivered":      {in: report, fails: map[string]error{"milan": broken}, want: broken},
		"no workflow waits for the report": {in: report, fails: map[string]error{"milan": fleet.ErrNotRunning}},
		"a release without its provider":   {in: activities.ReportInput{Holds: in.Holds}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &messages{fails: c.fails}
			err := ended(t, (&activities.Activities{Messages: m}).Report, c.in)
			if c.want != nil {
				require.ErrorContains(t, err, c.want.Error())
				return
			}
			require.NoError(t, err)
			require.Len(t, m.reports, map[bool]int{true: 1}[c.in.Report != nil])
			require.Len(t, m.views, map[bool]int{true: 1}[c.in.View != nil])
			require.Len(t, m.holds, map[bool]int{true: 1}[c.in.Provider != "" && c.in.Holds != nil])
		})
	}
}
