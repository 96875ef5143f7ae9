package show

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/natsort"
)

// openCostHeader contains the columns of OpenCost's CSV of prices (opencost/opencost, configs/pricing_schema.csv).
var openCostHeader = []string{"EndTimestamp", "InstanceID", "Region", "AssetClass", "InstanceIDField", "InstanceType",
	"MarketPriceHourly", "Version"}

// OpenCostCSV prints the hourly price of each node in OpenCost's CSV format (CSV_PATH). Each Node has one row, which
// OpenCost finds by the providerID. Nodes without a price have no row. InstanceType contains the name of the node,
// because OpenCost would otherwise use the mean price of all nodes of a type (opencost/opencost,
// pkg/cloud/provider/csvprovider.go, NodePricing). Region stays empty: if any row has a region, OpenCost also
// compares the regions of Nodes.
func OpenCostCSV(out io.Writer, now time.Time, groups []fleet.Snapshot) error {
	groups = slices.Clone(groups)
	slices.SortFunc(groups, func(a, b fleet.Snapshot) int { return natsort.Compare(a.Group, b.Group) })
	w := csv.NewWriter(out)
	_ = w.Write(openCostHeader) // w.Error returns the error of each write
	for _, g := range groups {
		for _, i := range g.Instances {
			if i.Price > 0 {
				_ = w.Write([]string{now.UTC().Format("2006-01-02 15:04:05 MST"), i.ID(g.Group), "", "node", "spec.providerID",
					fleet.ObjectName(i.Name, i.Attempt), strconv.FormatFloat(i.Price.Float(), 'f', 6, 64), ""})
			}
		}
	}
	w.Flush()
	return w.Error()
}
