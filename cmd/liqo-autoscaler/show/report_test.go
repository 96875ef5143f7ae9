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

// published returns bills that groups published hours before the report. The nodes of the groups also cost money
// between the bill and the report.
func published() []money.Bill {
	return []money.Bill{
		{Group: "standard", Account: "team", Cost: money.Cost{Currency: "EUR", Since: ago(20 * 24 * time.Hour),
			At: ago(18 * time.Hour), Unpriced: 1800, Providers: map[string]money.ProviderCost{
				"milan": {Rate: money.Of(2), Nodes: 2, Unpriced: 1, Today: money.Of(10)},
				"turin": {Total: money.Of(7.5)}}},
			Days: []money.CostDay{{Date: "2026-11-01", Providers: amounts("milan", 100.0)},
				{Date: "2026-11-15", Providers: amounts("milan", 12.5, "turin", 7.25, money.OtherProviders, 0.25)},
				{Date: "2026-11-18", Providers: amounts("milan", 30.0), Unpriced: 5400}}},
		{Group: "gpu <&>", Account: "gpu <&>", Cost: money.Cost{Currency: "EUR", Since: ago(500 * 24 * time.Hour),
			At: now, Providers: map[string]money.ProviderCost{"paris": {Nodes: 1, Unpriced: 1}}},
			Days: []money.CostDay{{Date: "2026-11-18", Providers: amounts("paris", 44.123456)}}},
		{Group: "new", Account: "new"},
	}
}

// ended returns three bills. The first one is of the group basic, which has been renamed to standard. The second one
// is of an earlier run of the group standard, and the third one of a group that still runs.
func ended() []money.Bill {
	return []money.Bill{
		{Group: "basic", Account: "team", From: "2026-11-12", Cost: money.Cost{Currency: "EUR",
			Since: ago(40 * 24 * time.Hour), At: ago(30 * time.Hour), Providers: map[string]money.ProviderCost{
				"milan": {Today: money.Of(3)}}},
			Days: []money.CostDay{{Date: "2026-11-16", Providers: amounts("milan", 5.0)}}},
		{Group: "standard", Account: "standard", Cost: money.Cost{Currency: "EUR",
			Since: ago(60 * 24 * time.Hour), At: ago(20 * 24 * time.Hour)},
			Days: []money.CostDay{{Date: "2026-11-15", Providers: amounts("milan", 1.0)}}},
		published()[1].Settled(),
	}
}

func TestReportMatchesItsGoldenFiles(t *testing.T) {
	full := show.ReportOf(ago(6*24*time.Hour), now, published(), ended())
	for name, r := range map[string]show.Report{
		"report": full, "report-nothing": show.ReportOf(ago(0), now, nil, nil),
		"report-idle": show.ReportOf(ago(24*time.Hour), now, nil, ended()[:1]),
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

// The report contains a separate total for each currency.
func TestEachCurrencyHasItsOwnSum(t *testing.T) {
	var groups []money.Bill
	for n := range 30 {
		groups = append(groups, money.Bill{Group: fmt.Sprintf("group-%d", n),
			Cost: money.Cost{Currency: "EUR", Since: ago(400 * 24 * time.Hour), At: now},
			Days: []money.CostDay{{Date: "2025-12-24", Providers: amounts("milan", float64(30-n))}}})
	}
	var out bytes.Buffer
	groups[3].Cost.Currency = "USD"
	r := show.ReportOf(ago(399*24*time.Hour), now, groups, nil)
	require.NoError(t, r.Text(&out))
	require.Regexp(t, `all +- +- +438.00 EUR`, out.String())
	require.Regexp(t, `all +- +- +27.00 USD`, out.String())
}

// OpenCost finds the price of each node by its providerID. A node without a price has no row.
func TestOpenCostCSVHasAPricePerNode(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, show.OpenCostCSV(&out, now, []fleet.Snapshot{
		{Group: "standard", Instances: []fleet.InstanceView{
			{Name: "standard-t0-1", Attempt: 2, Phase: fleet.Ready, Provider: "milan", Price: money.Of(0.25)},
			{Name: "standard-t0-2", Attempt: 1, Phase: fleet.Ready, Provider: "rome"},
			{Name: "standard-t0-3", Phase: fleet.Pending}}},
		{Group: "gpu", Instances: []fleet.InstanceView{
			{Name: "gpu-t0-1", Attempt: 1, Phase: fleet.Draining, Provider: "milan", Price: money.Of(3)}}},
	}))
	stamp := now.UTC().Format("2006-01-02 15:04:05 MST")
	require.Equal(t, "EndTimestamp,InstanceID,Region,AssetClass,InstanceIDField,InstanceType,MarketPriceHourly,Version\n"+
		stamp+",liqo://gpu/gpu-t0-1,,node,spec.providerID,lca-gpu-t0-1-1,3.000000,\n"+
		stamp+",liqo://standard/standard-t0-1,,node,spec.providerID,lca-standard-t0-1-2,0.250000,\n", out.String())
}
