package show

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/natural"
)

// ReportFormats are the values of -o of the report.
var ReportFormats = []string{"text", "csv"}

// others stands for the providers of a day that a group does not keep apart.
const others = "(others)"

// Report is what nodes have cost on the days From to Until, both included, in UTC.
type Report struct {
	From, Until time.Time
	Groups      []ReportGroup
	Rows        []ReportRow // by date, then group and provider
}

// ReportGroup is what is known of a node group.
type ReportGroup struct {
	Name string
	Cost money.Cost
	// Since is from when it has sums; Unpriced how long nodes ran in the time of the report whose price nobody knows.
	Since    time.Time
	Unpriced time.Duration
}

// ReportRow is what a group's nodes on a provider have cost on a day.
type ReportRow struct {
	Date, Group, Provider, Currency string
	Cost                            float64
}

// GroupDays is what a group has published.
type GroupDays struct {
	Snapshot fleet.Snapshot
	Days     []money.CostDay
}

// ReportOf adds up what groups have published, until now.
func ReportOf(from, now time.Time, groups []GroupDays) Report {
	r := Report{From: from.UTC().Truncate(24 * time.Hour), Until: now.UTC().Truncate(24 * time.Hour)}
	slices.SortFunc(groups, func(a, b GroupDays) int { return natural.Compare(a.Snapshot.Group, b.Snapshot.Group) })
	for _, g := range groups {
		cost, over := g.Snapshot.Cost.Until(now)
		of := ReportGroup{Name: g.Snapshot.Group, Cost: cost, Since: cost.Since}
		if kept := r.Until.AddDate(0, 0, -money.CostDays); !of.Since.IsZero() && of.Since.Before(kept) {
			of.Since = kept
		}
		for _, day := range append(append(slices.Clone(g.Days), over...), cost.Day()) {
			if day.Date < r.From.Format(time.DateOnly) {
				continue
			}
			of.Unpriced += time.Duration(day.Unpriced) * time.Second
			for id, amount := range day.Providers {
				if id == money.OtherProviders {
					id = others
				}
				r.Rows = append(r.Rows, ReportRow{day.Date, of.Name, id, cost.Currency, amount.Float()})
			}
		}
		r.Groups = append(r.Groups, of)
	}
	slices.SortFunc(r.Rows, func(a, b ReportRow) int {
		return natural.Compare(a.Date+"/"+a.Group+"/"+a.Provider, b.Date+"/"+b.Group+"/"+b.Provider)
	})
	return r
}

// CSV prints the rows, amounts to the millionth.
func (r Report) CSV(out io.Writer) error {
	w := csv.NewWriter(out)
	_ = w.Write([]string{"date", "group", "provider", "currency", "cost"}) // w.Error tells
	for _, row := range r.Rows {
		_ = w.Write([]string{row.Date, row.Group, row.Provider, row.Currency, strconv.FormatFloat(row.Cost, 'f', 6, 64)})
	}
	w.Flush()
	return w.Error()
}

// Text prints sums by group and provider, and what is not in them.
func (r Report) Text(out io.Writer) error {
	if len(r.Groups) == 0 {
		_, err := fmt.Fprintln(out, "No node groups run.")
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Cost from %s to %s, UTC\n\n", r.From.Format(time.DateOnly), r.Until.Format(time.DateOnly))
	if err := output.Table(&b, []string{"GROUP", "PROVIDER", "COST", "PER HOUR NOW"}, r.sums()); err != nil {
		return err
	}
	b.WriteByte('\n')
	for _, g := range r.Groups {
		text := "has no data yet"
		if !g.Since.IsZero() {
			text = "has data since " + g.Since.Format(time.RFC3339)
		}
		if g.Unpriced > 0 {
			text += fmt.Sprintf("; %.1f hours of nodes are not in the sums: their offers had no price", g.Unpriced.Hours())
		}
		fmt.Fprintf(&b, "%s %s\n", g.Name, text)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// sums are the rows of the text: each group's providers, and all of a currency.
func (r Report) sums() (rows [][]string) {
	totals, rates, unpriced, order := map[string]float64{}, map[string]float64{}, map[string]int{}, []string{}
	for _, g := range r.Groups {
		spent := map[string]float64{}
		for id := range g.Cost.Providers {
			spent[id] = 0
		}
		for _, row := range r.Rows {
			if row.Group == g.Name {
				spent[row.Provider] += row.Cost
			}
		}
		currency := g.Cost.Currency
		if !slices.Contains(order, currency) && len(spent) > 0 {
			order = append(order, currency)
		}
		for _, provider := range slices.SortedFunc(maps.Keys(spent), natural.Compare) {
			now := g.Cost.Providers[provider]
			rows = append(rows, []string{g.Name, provider, sum(spent[provider], now.Unpriced, currency),
				perHour(now.Rate.Float(), now.Unpriced, currency)})
			totals[currency] += spent[provider]
			rates[currency] += now.Rate.Float()
			unpriced[currency] += now.Unpriced
		}
	}
	for _, currency := range order {
		rows = append(rows, []string{"all", "", inCurrency(totals[currency], currency),
			perHour(rates[currency], unpriced[currency], currency)})
	}
	return rows
}
