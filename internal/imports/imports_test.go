// Package imports checks who imports whom, as docs/architecture.md promises under "The house".
package imports

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/liqo-autoscaler/liqo-autoscaler/"

// mayImport are those of our packages that one may import, besides those of its own folder and of internal. Each line
// has what its right-hand side may import, too. worker and cmd wire everything, and are left out.
var mayImport = map[string][]string{
	"workflows/money":      {},
	"workflows/fleet":      {"workflows/money"},
	"workflows/choice":     {"workflows/fleet", "workflows/money"},
	"workflows/comparison": {"workflows/fleet"},
	"workflows/driver":     {"workflows/fleet"},
	"workflows/provider":   {"workflows/fleet"},
	"workflows/template":   {"workflows/fleet"},
	"activities/backend":   {"workflows/fleet", "workflows/template"},
	"discovery":            {"workflows/fleet", "workflows/choice"},
	"grpcserver": {"workflows/fleet", "workflows/money", "workflows/choice", "workflows/template",
		"discovery", "discovery/market"},
	"activities": {"workflows/fleet", "workflows/choice", "workflows/comparison", "workflows/template",
		"activities/backend", "discovery"},
	"workflows": {"workflows/fleet", "workflows/money", "workflows/choice", "workflows/comparison",
		"workflows/driver", "workflows/provider", "activities/backend", "discovery", "activities"},
	"workflows/client": {"workflows/fleet", "workflows/money", "activities/backend", "discovery",
		"activities", "workflows"},
	"internal": {},
	"deploy":   {},
}

// adapters are imported by worker, cmd and tests alone; discovery/market is data and no adapter.
var adapters = []string{"activities/backend/", "discovery/", "internal/testkit/", "worker", "cmd"}

// list runs go list in the module's root, and returns the fields of its lines.
func list(t *testing.T, args ...string) (lines [][]string) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = "../.."
	out, err := cmd.Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}

// room is the longest row of the table that a package belongs to.
func room(of string) (name string) {
	for row := range mayImport {
		if (of == row || strings.HasPrefix(of, row+"/")) && len(row) > len(name) {
			name = row
		}
	}
	return name
}

func TestWhoImportsWhom(t *testing.T) {
	rooms := map[string]bool{}
	for _, line := range list(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...") {
		from := strings.TrimPrefix(line[0], module)
		if strings.HasPrefix(from, "worker") || strings.HasPrefix(from, "cmd") {
			continue
		}
		own := room(from)
		require.NotEmpty(t, own, "%s is in no row of the table", from)
		rooms[own] = true
		for _, path := range line[1:] {
			to, ours := strings.CutPrefix(path, module)
			if !ours || strings.HasPrefix(to, own+"/") || to == own ||
				strings.HasPrefix(to, "internal/") && !strings.HasPrefix(to, "internal/testkit") {
				continue
			}
			adapter := slices.ContainsFunc(adapters, func(a string) bool { return strings.HasPrefix(to, a) })
			allowed := slices.Contains(mayImport[own], to) && (!adapter || to == "discovery/market")
			testKit := from == "internal/testkit/simworld" || from == "activities/backend/backendtest"
			require.True(t, allowed || testKit, "%s imports %s", from, to)
		}
	}
	require.Len(t, rooms, len(mayImport), "a row of the table is nobody's")
}

// Workflow code decides by its inputs alone: it reaches no client of a cluster, not even through what it imports.
func TestWorkflowsReachNoCluster(t *testing.T) {
	packages := list(t, "-deps", "./workflows", "./workflows/choice", "./workflows/comparison")
	require.Contains(t, packages, []string{module + "activities"})
	for _, p := range packages {
		for _, client := range []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "github.com/liqotech"} {
			require.False(t, strings.HasPrefix(p[0], client), "workflows reaches %s", p[0])
		}
	}
}
