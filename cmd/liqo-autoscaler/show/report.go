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
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/natsort"
)

// ReportFormats are the values of -o of the report.
var ReportFormats = []string{"text", "csv", "opencost-csv"}

// others is the report's name for the providers that a bill combines into one entry. A bill does this because it
// limits the number of providers per day.
const others = "(others)"

// Report contains the costs of nodes on the days from From to Until, in UTC. Both days are included.
type Report struct {
	From, Until time.Time
	Groups      []ReportGroup
	Rows        []ReportRow // by date, then group and provider

	rows map[ReportRow]int // maps each row, with Cost 0, to its index in Rows
}

// ReportGroup contains the costs of a node group. If the group ended and was created again, ReportGroup combines the
// costs of all runs.
type ReportGroup struct {
	Name, Account string
	// Cost is the present cost, or the last cost of a group that has ended.
	Cost money.Cost
	// Since is the start of the time that the sums of the group cover. Unpriced is the time for which nodes without a
	// known price ran during the report.
	Since    time.Time
	Unpriced time.Duration
	// Ended is true when the group no longer runs.
	Ended bool
}

// ReportRow contains the costs of a group's nodes on a provider on one day.
type ReportRow struct {
	Date, Group, Account, Provider, Currency string
	Cost                                     float64
}

// ReportOf adds up the bills of running groups until now, and the bills of ended groups. If a group's run is in both
// lists, it counts once.
func ReportOf(from, now time.Time, running, ended []money.Bill) Report {
	r := Report{From: from.UTC().Truncate(24 * time.Hour), Until: now.UTC().Truncate(24 * time.Hour),
		rows: map[ReportRow]int{}}
	for _, b := range running {
		r.add(b, now, false)
	}
	for _, b := range ended {
		same := func(live money.Bill) bool { return live.Is(b.Group, b.Cost.Since) }
		if !slices.ContainsFunc(running, same) {
			r.add(b, now, true)
		}
	}
	slices.SortFunc(r.Groups, func(a, b ReportGroup) int { return natsort.Compare(a.Name, b.Name) })
	slices.SortFunc(r.Rows, func(a, b ReportRow) int {
		return natsort.Compare(a.Date+"/"+a.Group+"/"+a.Provider, b.Date+"/"+b.Group+"/"+b.Provider)
	})
	return r
}

// add adds the bill of one run of a group, from the creation of the group to its end.
func (r *Report) add(b money.Bill, now time.Time, ended bool) {
	cost, over := b.Cost, []money.CostDay(nil)
	if !ended {
		cost, over = b.Cost.Until(now)
	}
	of := ReportGroup{Name: b.Group, Account: b.Account, Cost: cost, Since: r.since(b), Ended: ended}
	for _, day := range append(append(slices.Clone(b.Days), over...), cost.Day()) {
		if day.Date < r.From.Format(time.DateOnly) {
			continue
		}
		of.Unpriced += time.Duration(day.Unpriced) * time.Second
		for id, amount := range day.Providers {
			if id == money.OtherProviders {
				id = others
			}
			r.addRow(ReportRow{day.Date, of.Name, of.Account, id, cost.Currency, amount.Float()})
		}
	}
	r.addGroup(of)
}

// since returns the first day of the report for which a bill has data.
func (r *Report) since(b money.Bill) time.Time {
	since := b.Cost.Since
	if kept := r.Until.AddDate(0, 0, -money.CostDays); !since.IsZero() && since.Before(kept) {
		since = kept
	}
	if first, err := time.Parse(time.DateOnly, b.From); err == nil && first.After(since) {
		since = first
	}
	return since
}

// addGroup adds a group. If the report already has another run of the group, addGroup combines the two.
func (r *Report) addGroup(of ReportGroup) {
	n := slices.IndexFunc(r.Groups, func(g ReportGroup) bool {
		return g.Name == of.Name && g.Cost.Currency == of.Cost.Currency
	})
	if n < 0 {
		r.Groups = append(r.Groups, of)
		return
	}
	have := &r.Groups[n]
	if have.Ended && !of.Ended {
		have.Cost, have.Account, have.Ended = of.Cost, of.Account, false
	}
	if !of.Since.IsZero() && of.Since.Before(have.Since) {
		have.Since = of.Since
	}
	have.Unpriced += of.Unpriced
}

// addRow adds a row. If the report already has a row of another run of the group for this day and provider, addRow
// adds the amount to that row.
func (r *Report) addRow(row ReportRow) {
	key := row
	key.Cost = 0
	if n, known := r.rows[key]; known {
		r.Rows[n].Cost += row.Cost
		return
	}
	r.rows[key] = len(r.Rows)
	r.Rows = append(r.Rows, row)
}

// CSV prints the rows, with amounts to six decimal places.
func (r Report) CSV(out io.Writer) error {
	w := csv.NewWriter(out)
	_ = w.Write([]string{"date", "group", "account", "provider", "currency", "cost"}) // w.Error reports errors
	for _, row := range r.Rows {
		_ = w.Write([]string{row.Date, row.Group, row.Account, row.Provider, row.Currency,
			strconv.FormatFloat(row.Cost, 'f', 6, 64)})
	}
	w.Flush()
	return w.Error()
}

// Text prints the sums by group and provider, and notes about costs that the sums do not include.
func (r Report) Text(out io.Writer) error {
	if len(r.Groups) == 0 {
		_, err := fmt.Fprintln(out, "No node groups run, and no costs are recorded.")
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Cost from %s to %s, UTC\n\n", r.From.Format(time.DateOnly), r.Until.Format(time.DateOnly))
	if err := output.Table(&b, []string{"GROUP", "ACCOUNT", "PROVIDER", "COST", "PER HOUR NOW"}, r.sums()); err != nil {
		return err
	}
	b.WriteByte('\n')
	for _, g := range r.Groups {
		text := "has no data yet"
		if !g.Since.IsZero() {
			text = "has data since " + g.Since.Format(time.RFC3339)
		}
		if g.Ended {
			text += "; it no longer runs"
		}
		if g.Unpriced > 0 {
			text += fmt.Sprintf("; %.1f node hours are not in the sums: their offers had no price", g.Unpriced.Hours())
		}
		fmt.Fprintf(&b, "%s %s\n", g.Name, text)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// sums returns the table rows of the text: one for each provider of each group, and one with the total of each
// currency.
func (r Report) sums() (rows [][]string) {
	totals, rates, unpriced, order := map[string]float64{}, map[string]float64{}, map[string]int{}, []string{}
	for _, g := range r.Groups {
		spent := map[string]float64{}
		for id := range g.Cost.Providers {
			spent[id] = 0
		}
		for _, row := range r.Rows {
			if row.Group == g.Name && row.Currency == g.Cost.Currency {
				spent[row.Provider] += row.Cost
			}
		}
		currency := g.Cost.Currency
		if !slices.Contains(order, currency) && len(spent) > 0 {
			order = append(order, currency)
		}
		for _, provider := range slices.SortedFunc(maps.Keys(spent), natsort.Compare) {
			now := g.Cost.Providers[provider]
			rows = append(rows, []string{g.Name, g.Account, provider, sum(spent[provider], now.Unpriced, currency),
				perHour(now.Rate.Float(), now.Unpriced, currency)})
			totals[currency] += spent[provider]
			rates[currency] += now.Rate.Float()
			unpriced[currency] += now.Unpriced
		}
	}
	for _, currency := range order {
		rows = append(rows, []string{"all", "", "", inCurrency(totals[currency], currency),
			perHour(rates[currency], unpriced[currency], currency)})
	}
	return rows
}
