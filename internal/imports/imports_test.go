// Package imports checks that the packages import each other only as docs/contributing/packages.md describes.
package imports

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/liqo-autoscaler/liqo-autoscaler/"

// mayImport has a row for each folder of packages. The value lists the other rows that the folder may import. A row
// lists only rows above it. Each folder may also import packages of its own row, and the helpers in the row internal.
// The rows cmd and internal/serve/parts may import almost all other rows, because they connect the parts.
var mayImport = map[string][]string{
	"internal":                  {},
	"internal/fleet/money":      {},
	"internal/fleet":            {"internal/fleet/money"},
	"internal/fleet/choice":     {"internal/fleet", "internal/fleet/money"},
	"internal/fleet/comparison": {"internal/fleet"},
	"internal/fleet/driver":     {"internal/fleet"},
	"internal/fleet/provider":   {"internal/fleet"},
	"internal/fleet/template":   {"internal/fleet"},
	"discovery":                 {"internal/fleet", "internal/fleet/choice"},
	"discovery/market":          {"internal/fleet", "internal/fleet/choice", "discovery"},
	"activities/backend":        {"internal/fleet", "internal/fleet/template"},
	"activities": {"internal/fleet", "internal/fleet/money", "internal/fleet/choice", "internal/fleet/comparison",
		"internal/fleet/template", "discovery", "activities/backend"},
	"workflows": {"internal/fleet", "internal/fleet/money", "internal/fleet/choice", "internal/fleet/comparison",
		"internal/fleet/driver", "internal/fleet/provider", "discovery", "activities/backend", "activities"},
	"workflows/client": {"internal/fleet", "internal/fleet/money", "discovery", "activities/backend", "activities",
		"workflows"},
	"grpcserver": {"internal/fleet", "internal/fleet/money", "internal/fleet/choice", "internal/fleet/template",
		"discovery", "discovery/market"},
	"worker": {"internal/fleet", "internal/fleet/money", "internal/fleet/choice", "internal/fleet/comparison",
		"internal/fleet/template", "discovery", "discovery/market",
		"activities/backend", "activities", "workflows", "workflows/client"},
	"deploy":           {},
	"internal/testkit": {"deploy", "discovery"},
	"internal/test":    {"internal/fleet", "activities/backend"},
	"internal/cli":     {},
	"internal/connect": {"internal/fleet", "workflows", "worker", "internal/cli"},
	"internal/serve":   {"internal/fleet", "discovery", "discovery/market", "internal/cli"},
	"internal/serve/parts": {"internal/fleet", "discovery", "discovery/market", "activities/backend", "activities",
		"workflows", "workflows/client", "grpcserver", "worker", "internal/cli", "internal/connect", "internal/serve"},
	"cmd/liqo-autoscaler-agent":    {"discovery", "internal/cli", "internal/serve"},
	"cmd/externalgrpc-conformance": {"grpcserver", "internal/cli"},
	"cmd/liqo-autoscaler": {"internal/fleet", "internal/fleet/money", "internal/fleet/choice", "internal/fleet/template",
		"discovery", "discovery/market", "activities/backend", "activities", "workflows", "workflows/client", "grpcserver",
		"worker", "deploy", "internal/cli", "internal/connect", "internal/serve", "internal/serve/parts"},
}

// forPrograms are the packages from which programs are built. Only programs may import them, and they may import each
// other.
var forPrograms = []string{"internal/cli", "internal/connect", "internal/serve"}

// kits are folders of test helpers. Only tests and other kits may import them.
var kits = []string{"internal/testkit", "internal/test", "activities/backend/backendtest", "discovery/store/storetest",
	"worker/workertest"}

// adapters may be imported only by packages of their own row, by programs, by the packages in forPrograms, and by
// kits.
var adapters = []string{"activities/backend/liqo", "activities/backend/microvm", "activities/backend/sim",
	"discovery/agent", "discovery/client", "discovery/file", "discovery/secrets", "discovery/server", "discovery/store"}

// list runs `go list` in the root of the module. It returns the words of each line.
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

// room returns the row of the table to which a package belongs. If several rows match, it returns the row with the
// longest path.
func room(of string) (name string) {
	for row := range mayImport {
		if (of == row || strings.HasPrefix(of, row+"/")) && len(row) > len(name) {
			name = row
		}
	}
	return name
}

func in(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return path == f || strings.HasPrefix(path, f+"/") })
}

func allowed(from, to string) bool {
	own, other := room(from), room(to)
	switch {
	case in(to, kits):
		return in(from, kits)
	case own == other || other == "internal":
		return true
	default:
		program := in(from, forPrograms) || strings.HasPrefix(from, "cmd/")
		return slices.Contains(mayImport[own], other) && (!in(to, adapters) || program || in(from, kits)) &&
			(!in(to, forPrograms) || program)
	}
}

func TestImportsFollowTheTable(t *testing.T) {
	rooms := map[string]bool{}
	for _, line := range list(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...") {
		from := strings.TrimPrefix(line[0], module)
		own := room(from)
		require.NotEmpty(t, own, "%s is in no row of the table", from)
		rooms[own] = true
		for _, path := range line[1:] {
			if to, ours := strings.CutPrefix(path, module); ours {
				require.True(t, allowed(from, to), "%s imports %s", from, to)
			}
		}
	}
	require.Len(t, rooms, len(mayImport), "a row of the table has no package")
}

// If a row may import another row, that row may not import the first one, directly or through other rows.
func TestRowsFormNoCycle(t *testing.T) {
	var reaches func(from, to string, seen map[string]bool) bool
	reaches = func(from, to string, seen map[string]bool) bool {
		seen[from] = true
		return slices.ContainsFunc(mayImport[from], func(next string) bool {
			return next == to || !seen[next] && reaches(next, to, seen)
		})
	}
	for row, others := range mayImport {
		require.False(t, reaches(row, row, map[string]bool{}), "%s reaches itself", row)
		for _, other := range others {
			require.Contains(t, mayImport, other)
		}
	}
}

// Providers install the agent, so it must stay small. It contains no Temporal client, no database, and no controllers
// of Liqo.
func TestAgentReachesNoTemporalDatabaseOrLiqo(t *testing.T) {
	packages := list(t, "-deps", "./cmd/liqo-autoscaler-agent")
	require.Contains(t, packages, []string{module + "discovery/agent"})
	for _, p := range packages {
		for _, heavy := range []string{"go.temporal.io", "modernc.org/sqlite", "github.com/jackc/pgx", "github.com/liqotech",
			module + "workflows/client", module + "worker"} {
			require.False(t, strings.HasPrefix(p[0], heavy), "the agent reaches %s", p[0])
		}
	}
}

// TestProgramCompilesNoUnusedExporters checks that the program contains only the exporters of OpenTelemetry that it
// uses. The unused exporters were removed so that the first `make run` is faster. The program uses OpenTelemetry for
// spans. It exports no logs, and it exports metrics only to Prometheus.
func TestProgramCompilesNoUnusedExporters(t *testing.T) {
	const exporters = "go.opentelemetry.io/otel/exporters/"
	packages := list(t, "-deps", "./cmd/liqo-autoscaler")
	for _, spans := range []string{"otlp/otlptrace/otlptracegrpc", "otlp/otlptrace/otlptracehttp", "stdout/stdouttrace"} {
		require.Contains(t, packages, []string{exporters + spans})
	}
	for _, p := range packages {
		for _, unused := range []string{"go.opentelemetry.io/contrib/exporters", "go.opentelemetry.io/contrib/bridges",
			"go.opentelemetry.io/otel/log", "go.opentelemetry.io/otel/sdk/log", exporters + "otlp/otlplog",
			exporters + "otlp/otlpmetric", exporters + "stdout/stdoutlog", exporters + "stdout/stdoutmetric"} {
			require.False(t, strings.HasPrefix(p[0], unused), "the program reaches %s", p[0])
		}
	}
}

// Workflow code depends only on its inputs. It imports no client of a cluster, not even through other packages.
func TestWorkflowsReachNoCluster(t *testing.T) {
	packages := list(t, "-deps", "./workflows", "./internal/fleet/...")
	require.Contains(t, packages, []string{module + "activities"})
	for _, p := range packages {
		for _, client := range []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "github.com/liqotech"} {
			require.False(t, strings.HasPrefix(p[0], client), "workflows reaches %s", p[0])
		}
	}
}

// TestMirrorIsNotRead checks that no code reads the objects of the mirror, which are only for people. Only the code
// that starts the worker imports the package mirror, and no other package names a resource of the mirror.
func TestMirrorIsNotRead(t *testing.T) {
	var importers []string
	for _, line := range list(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...") {
		if slices.Contains(line[1:], module+"worker/mirror") {
			importers = append(importers, strings.TrimPrefix(line[0], module))
		}
	}
	require.Equal(t, []string{"internal/serve/parts"}, importers)
	for _, line := range list(t, "-f", `{{.Dir}} {{join .GoFiles " "}}`, "./...") {
		for _, name := range line[1:] {
			source, err := os.ReadFile(filepath.Join(line[0], name))
			require.NoError(t, err)
			named := strings.Contains(string(source), "liqonodegroups") || strings.Contains(string(source), "liqooffers")
			require.Equal(t, strings.HasSuffix(line[0], "worker/mirror") && name == "objects.go", named, "%s/%s", line[0], name)
		}
	}
}

// maxFiles is the maximum number of production files in a package. A larger package must be split.
const maxFiles = 30

// A package is small enough to be read completely. The only exception is the Liqo backend: see "The Liqo backend is
// one package" in docs/contributing/decisions.md.
func TestPackagesAreSmall(t *testing.T) {
	for _, p := range list(t, "-f", "{{.ImportPath}} {{len .GoFiles}}", "./...") {
		files, err := strconv.Atoi(p[1])
		require.NoError(t, err)
		if p[0] != module+"activities/backend/liqo" {
			require.LessOrEqual(t, files, maxFiles, p[0])
		}
	}
}
