package cli_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
)

// Usage lines, examples and hints contain the command in the form in which the user has typed it.
func TestUsageOfAKubectlPlugin(t *testing.T) {
	for program, name := range map[string]string{
		"/opt/krew/bin/kubectl-liqo_autoscaler": "kubectl liqo-autoscaler",
		"kubectl-liqo_autoscaler":               "kubectl liqo-autoscaler",
		"/usr/bin/liqo-autoscaler":              "liqo-autoscaler",
		"/kubectl-x/liqo-autoscaler":            "liqo-autoscaler",
		"":                                      "liqo-autoscaler",
	} {
		usage := func(args ...string) string {
			root := &cobra.Command{Use: "liqo-autoscaler", SilenceErrors: true, SilenceUsage: true, Version: "1.2.3"}
			root.AddCommand(&cobra.Command{Use: "status NAME", Example: "  liqo-autoscaler status a\n  liqo-autoscaler status b",
				Run: func(*cobra.Command, []string) {}})
			cli.AsPlugin(root, program)
			var out strings.Builder
			root.SetOut(&out)
			root.SetArgs(args)
			require.NoError(t, root.ExecuteContext(t.Context()))
			return out.String()
		}
		status := usage("status", "--help")
		require.Contains(t, status, "\n  "+name+" status NAME [flags]\n")
		require.Contains(t, status, "\n  "+name+" status a\n  "+name+" status b\n")
		help := usage("--help")
		require.Contains(t, help, "\n  "+name+" [command]\n")
		require.Contains(t, help, `"`+name+` [command] --help"`)
		require.Equal(t, "liqo-autoscaler version 1.2.3\n", usage("--version"))
	}
}
