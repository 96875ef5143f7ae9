package operate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// stream prints a line for each change. Its methods must not be called concurrently.
type stream struct {
	output      string // one of output.Formats
	selected    show.Selection
	out, errOut io.Writer
}

// failed prints the error with which an outage starts. recovered prints that the outage has ended.
func (v stream) failed(err error) {
	fmt.Fprintln(v.errOut, "error:", shorten.Lines(err.Error()), "(trying again)")
}
func (v stream) recovered() { fmt.Fprintln(v.errOut, "the node groups can be read again") }

// changed prints the changes between two snapshots of a group. For the first snapshot of a group, before is the zero
// value.
func (v stream) changed(before, after fleet.Snapshot, balance func(fleet.Snapshot) money.Balance) error {
	var errs []error
	style := output.StyleFor(v.out)
	style.Wide = v.output == "wide"
	for _, change := range show.Changes(before, after, balance) {
		if change.Name != "" && !v.selected.Instance(change.Instance) {
			continue
		}
		if v.output == "json" {
			errs = append(errs, json.NewEncoder(v.out).Encode(change))
		} else {
			errs = append(errs, change.Row(v.out, style))
		}
	}
	return errors.Join(errs...)
}
