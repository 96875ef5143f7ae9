package show

import (
	"cmp"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/natural"
)

// Measures of the chart, in pixels.
const (
	chartWidth, chartHeight = 960.0, 400.0
	chartLeft, chartTop     = 90.0, 50.0
	chartRight, chartBottom = 20.0, 70.0
)

// chartColours can be told apart by people who see colours differently (Okabe and Ito).
var chartColours = []string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#666666"}

// SVG draws a bar for each day, a part for each group. The groups that cost least share the last colour.
func (r Report) SVG(out io.Writer) error {
	parts, days, currency, err := r.parts()
	if err != nil {
		return err
	}
	highest := 0.0
	for _, day := range days {
		total := 0.0
		for _, amount := range day {
			total += amount
		}
		highest = max(highest, total)
	}
	top := roundUp(highest)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" font-family="sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="white"/>
<text x="%g" y="24" font-size="16">Cost per day, %s to %s (UTC)</text>
`, chartWidth, chartHeight, chartLeft, r.From.Format(time.DateOnly), r.Until.Format(time.DateOnly))
	width, height := chartWidth-chartLeft-chartRight, chartHeight-chartTop-chartBottom
	for n := range 5 {
		y := chartTop + height*(1-float64(n)/4)
		fmt.Fprintf(&b, `<path d="M%g %.1fH%g" stroke="#ddd"/><text x="%g" y="%.1f" text-anchor="end">%.4g %s</text>`+"\n",
			chartLeft, y, chartWidth-chartRight, chartLeft-8, y+4, top*float64(n)/4, html.EscapeString(currency))
	}
	slot := width / float64(len(days))
	every := int(math.Ceil(80 / slot)) // days between two dates
	for n, day := range days {
		x, y := chartLeft+slot*float64(n), chartTop+height
		date := r.From.AddDate(0, 0, n).Format(time.DateOnly)
		for p, amount := range day {
			if amount == 0 {
				continue
			}
			high := height * amount / top
			y -= high
			fmt.Fprintf(&b, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s"><title>%s %s: %.2f %s</title></rect>`+
				"\n", x+slot*.1, y, slot*.8, high, chartColours[p], date, html.EscapeString(parts[p]), amount,
				html.EscapeString(currency))
		}
		if n%every == 0 {
			fmt.Fprintf(&b, `<text x="%.1f" y="%g">%s</text>`+"\n", x, chartTop+height+18, date)
		}
	}
	for p, name := range parts {
		x, y := chartLeft+float64(p%4)*210, chartHeight-30+float64(p/4)*18
		fmt.Fprintf(&b, `<rect x="%g" y="%g" width="10" height="10" fill="%s"/><text x="%g" y="%g">%s</text>`+"\n", x, y,
			chartColours[p], x+16, y+10, html.EscapeString(name))
	}
	b.WriteString("</svg>\n")
	_, err = io.WriteString(out, b.String())
	return err
}

// parts are the names of the parts, at most as many as there are colours, and each day's amounts for them.
func (r Report) parts() (names []string, days [][]float64, currency string, err error) {
	spent := map[string]float64{}
	for _, row := range r.Rows {
		if currency != "" && currency != row.Currency {
			return nil, nil, "", errors.New("the node groups have several currencies, which one picture cannot show: " +
				"choose groups of one with --group")
		}
		currency = row.Currency
		spent[row.Group] += row.Cost
	}
	names = slices.SortedFunc(maps.Keys(spent), func(a, b string) int {
		return cmp.Or(cmp.Compare(spent[b], spent[a]), natural.Compare(a, b))
	})
	part := map[string]int{}
	for n, name := range names {
		part[name] = min(n, len(chartColours)-1)
	}
	if len(names) > len(chartColours) {
		names = append(names[:len(chartColours)-1], "other groups")
	}
	days = make([][]float64, int(r.Until.Sub(r.From).Hours()/24+.5)+1)
	for n := range days {
		days[n] = make([]float64, len(names))
	}
	for _, row := range r.Rows {
		if date, err := time.Parse(time.DateOnly, row.Date); err == nil {
			if n := int(date.Sub(r.From).Hours()/24 + .5); n >= 0 && n < len(days) {
				days[n][part[row.Group]] += row.Cost
			}
		}
	}
	return names, days, currency, nil
}

// roundUp is the next 1, 2, 4 or 8 times a power of ten, so that quarters of it are short numbers.
func roundUp(amount float64) float64 {
	if amount <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(amount)))
	for _, n := range []float64{1, 2, 4, 8} {
		if n*power >= amount {
			return n * power
		}
	}
	return 10 * power
}
