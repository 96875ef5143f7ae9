package operate

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/explain"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
)

// explained is the output of an explain command.
type explained interface{ Text(out io.Writer) error }

func printExplained(out io.Writer, format string, e explained) error {
	if format == "json" {
		return output.JSON(out, e)
	}
	return e.Text(out)
}

func registerExplained(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVarP(format, "output", "o", "text", "what to print: text or json")
	cli.Values(cmd, "output", "text", "json")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *format != "text" && *format != "json" {
			return fmt.Errorf("--output %q: use text or json", *format)
		}
		return nil
	}
}

// explained returns a list of explanations for the pods of a file, or else the explanation of the only pod.
func (f explainPodFlags) explained(worlds []explain.World) explained {
	if f.file == "" {
		return explain.OfPod(worlds[0])
	}
	var pods explain.Pods
	for _, w := range worlds {
		pods = append(pods, explain.OfPod(w))
	}
	return pods
}
