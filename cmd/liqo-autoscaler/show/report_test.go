package show_test

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/golden"
)

func amounts(pairs ...any) map[string]money.Money {
	out := map[string]money.Money{}
	for n := 0; n < len(pairs); n += 2 {
		out[pairs[n].(string)] = money.Of(pairs[n+1].(float64))
	}
	return out
}

// published is what groups had published hours before the report: nodes go on costing until now.
func published() []show.GroupDays {
	return []show.GroupDays{
		{Snapshot: fleet.Snapshot{Group: "standard", Cost: money.Cost{Currency: "EUR", Since: ago(20 * 24 * time.Hour),
			At: ago(18 * time.Hour), Unpriced: 1800, Providers: map[string]money.ProviderCost{
				"milan": {Rate: money.Of(2), Nodes: 2, Unpriced: 1, Today: money.Of(10)},
				"turin": {Total: money.Of(7.5)}}}},
			Days: []money.CostDay{{Date: "2026-11-01", Providers: amounts("milan", 100.0)},
				{Date: "2026-11-15", Providers: amounts("milan", 12.5, "turin", 7.25, money.OtherProviders, 0.25)},
				{Date: "2026-11-18", Providers: amounts("milan", 30.0), Unpriced: 5400}}},
		{Snapshot: fleet.Snapshot{Group: "gpu <&>", Cost: money.Cost{Currency: "EUR", Since: ago(500 * 24 * time.Hour),
			At: now, Providers: map[string]money.ProviderCost{"paris": {Nodes: 1, Unpriced: 1}}}},
			Days: []money.CostDay{{Date: "2026-11-18", Providers: amounts("paris", 44.123456)}}},
		{Snapshot: fleet.Snapshot{Group: "new"}},
	}
}

func TestReport(t *testing.T) {
	full := show.ReportOf(ago(6*24*time.Hour), now, published())
	for name, r := range map[string]show.Report{
		"report": full, "report-nothing": show.ReportOf(ago(0), now, nil),
		"report-idle": show.ReportOf(ago(24*time.Hour), now, published()[:0:0]),
	} {
		for format, print := range map[string]func(io.Writer) error{"text": r.Text, "csv": r.CSV} {
			t.Run(name+"."+format, func(t *testing.T) {
				var out bytes.Buffer
				require.NoError(t, print(&out))
				golden.Check(t, filepath.Join("testdata", name+"."+format), out.String())
			})
		}
	}
}

// Each currency has a sum of its own.
func TestReportOfSeveralCurrencies(t *testing.T) {
	var groups []show.GroupDays
	for n := range 30 {
		groups = append(groups, show.GroupDays{Snapshot: fleet.Snapshot{Group: fmt.Sprintf("group-%d", n),
			Cost: money.Cost{Currency: "EUR", Since: ago(400 * 24 * time.Hour), At: now}},
			Days: []money.CostDay{{Date: "2025-12-24", Providers: amounts("milan", float64(30-n))}}})
	}
	var out bytes.Buffer
	groups[3].Snapshot.Cost.Currency = "USD"
	r := show.ReportOf(ago(399*24*time.Hour), now, groups)
	require.NoError(t, r.Text(&out))
	require.Regexp(t, `all +- +438.00 EUR`, out.String())
	require.Regexp(t, `all +- +27.00 USD`, out.String())
}
