package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/offerserver"
)

// completed lists the flags whose values a shell can complete.
var completed = []string{"group", "provider", "provider-id", "phase", "sort", "output", "backend", "log-level",
	"log-format"}

// A shell offers names of files only for an argument that is a file. For any other argument it offers other names or
// nothing.
func TestShellOffersFilesOnlyForFiles(t *testing.T) {
	seen := map[string]bool{}
	check := func(cmd *cobra.Command) func(*pflag.Flag) {
		return func(f *pflag.Flag) {
			if !slices.Contains(completed, f.Name) || strings.Contains(f.Usage, "new file") {
				return
			}
			_, ok := cmd.GetFlagCompletionFunc(f.Name)
			require.True(t, ok, "%s --%s", cmd.CommandPath(), f.Name)
			seen[f.Name] = true
		}
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(check(cmd))
		for _, below := range cmd.Commands() {
			require.Equal(t, !strings.Contains(below.Use, "FILE"), below.ValidArgsFunction != nil, below.CommandPath())
			walk(below)
		}
	}
	walk(newRoot())
	require.Len(t, seen, len(completed))
}

// `offers delete` completes the names of offers. It reads them from the discovery server that its flags name.
func TestOffersDeleteCompletesTheNamesOnTheServer(t *testing.T) {
	there := offerserver.New(t)
	offerserver.PutSamples(t, there)
	on := func(url string) []string {
		return []string{"__complete", "offers", "delete", "--discovery-url", url, "--discovery-ca", there.CAFile,
			"--discovery-token-file", there.TokenFile}
	}
	for want, words := range map[string][]string{
		"genoa\nmilan\nturin\n:4\n": append(on(there.URL), ""),
		":4\n":                      append(on("https://"+testkit.FreePorts(t, 1)[0]), ""),
	} {
		out, _, err := command(t.Context(), words...)
		require.NoError(t, err)
		require.Equal(t, want, out, words)
	}
	out, _, err := command(t.Context(), append(on(there.URL), "milan", "")...)
	require.NoError(t, err)
	require.Equal(t, ":4\n", out, "one argument alone")
}
