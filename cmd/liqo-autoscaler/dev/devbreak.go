package dev

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
)

// fault is a fault of a simulated provider that a command causes or ends.
type fault struct {
	verb, short, message string
	knobs                sim.Knobs
	full                 bool
}

var mishaps = []fault{
	{verb: "break", short: "Cut off a simulated provider: it cannot be reached",
		message: "no longer answers: new instances use other providers once their attempt has used up its time, and its " +
			"nodes are released after budgets.unready",
		knobs: sim.Knobs{Unreachable: true}},
	{verb: "slow", short: "Make a simulated provider hang: it accepts requests for a peering and never answers",
		message: "hangs: its next peering never completes, and instances that wait for it use other providers after " +
			"budgets.peer, or " +
			"immediately by temporal workflow cancel -w peering/%[1]s",
		knobs: sim.Knobs{Hang: backend.StageTenant}},
	{verb: "refuse", short: "Make a simulated provider refuse every node",
		message: "refuses: an instance that chooses this provider switches to another provider immediately",
		knobs:   sim.Knobs{Refuse: backend.StageResources, Message: "refused by dev refuse"}},
	{verb: "fill", short: "Fill a simulated provider: it has no capacity for a new node, although it still offers some",
		message: "has no capacity: it grants no new slices", full: true},
	{verb: "heal", short: "End every fault of a simulated provider", message: "is healthy again"},
}

// newFaultCommand returns the command for the fault m.
func newFaultCommand(m fault) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   m.verb + " PROVIDER",
		Short: m.short,
		Long: m.short + `.
The command takes effect immediately in the simulation that liqo-autoscaler dev runs in --dir. A fault lasts until
liqo-autoscaler dev heal ends it. A provider has the name of its offer.`,
		Example: "  liqo-autoscaler dev " + m.verb + " milan",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return fmt.Errorf("name one provider, as in \"liqo-autoscaler dev %s milan\"", m.verb)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path := filepath.Join(dir, "world.json")
			if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("%s contains no simulated world: start liqo-autoscaler dev first, or give its --dir", dir)
			}
			world, err := sim.Open(path)
			if err != nil {
				return err
			}
			if err := world.SetKnobs(cmd.Context(), args[0], m.knobs); err != nil {
				return err
			}
			if err := world.AddProvider(cmd.Context(), args[0], m.capacity()); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "provider %[1]s "+m.message+"\n", args[0])
			return nil
		},
	}
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return simulatedIn(dir, len(args)), cobra.ShellCompDirectiveNoFileComp
	}
	cmd.Flags().StringVar(&dir, "dir", ".run", "the directory (--dir) of the liqo-autoscaler dev that is running")
	return cmd
}

// simulatedIn returns the names of the providers in the simulated world of the directory. The shell completes a
// command's first argument with these names.
func simulatedIn(dir string, args int) []string {
	path := filepath.Join(dir, "world.json")
	if _, err := os.Stat(path); err != nil || args > 0 {
		return nil
	}
	world, err := sim.Open(path)
	if err != nil {
		return nil
	}
	state, err := world.Snapshot()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(state.Providers))
}

// capacity returns the capacity limit that the fault sets for the provider; nil means no limit.
func (m fault) capacity() corev1.ResourceList {
	if !m.full {
		return nil
	}
	return corev1.ResourceList{corev1.ResourceCPU: resource.Quantity{}}
}
