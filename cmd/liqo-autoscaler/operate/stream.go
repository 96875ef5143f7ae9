package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// stream prints a line for each change. Its methods are called one at a time.
type stream struct {
	output      string // one of output.Formats
	out, errOut io.Writer
}

// streamStatus prints the status and then each change, until ctx ends.
func streamStatus(ctx context.Context, groups *flow.Groups, f statusFlags, out, errOut io.Writer) error {
	v := stream{output: f.output, out: out, errOut: errOut}
	if f.output == "json" {
		return watchStatus(ctx, groups, f, v)
	}
	reading, cancel := context.WithTimeout(ctx, cli.ReadTimeout)
	defer cancel()
	known, err := f.snapshots(reading, groups)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil && !fleet.IsRefused(err, fleet.RefusedNotInitialised) {
		return err
	}
	if err := output.Print(out, f.output, output.Style{Now: time.Now()}, show.StatusOf(known...)); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if err := show.ChangeHeader(out); err != nil {
		return err
	}
	return watchStatus(ctx, groups, f, v, known...)
}

// failed prints why nothing can be read, once, and recovered that it can be read again.
func (v stream) failed(err error) { fmt.Fprintln(v.errOut, "error:", err, "(trying again)") }
func (v stream) recovered()       { fmt.Fprintln(v.errOut, "the node groups can be read again") }

// changed prints what a group published; before is the zero snapshot the first time.
func (v stream) changed(before, after fleet.Snapshot) error {
	var errs []error
	for _, change := range show.Changes(before, after) {
		if v.output == "json" {
			errs = append(errs, json.NewEncoder(v.out).Encode(change))
		} else {
			errs = append(errs, change.Row(v.out, output.Style{Wide: v.output == "wide", Now: time.Now()}))
		}
	}
	return errors.Join(errs...)
}
