package main

import (
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// firstColumn returns the texts in backquotes in the first column of the table that has this header.
func firstColumn(t *testing.T, path, head string) (names []string) {
	t.Helper()
	_, table, found := strings.Cut(document(t, path), head+"\n")
	require.True(t, found, "%s has no table %s", path, head)
	table, _, _ = strings.Cut(table, "\n\n")
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1) {
		names = append(names, m[1])
	}
	return names
}

// docs/labels.md lists exactly the labels, annotations and finalizers in our domain.
func TestDocumentedLabels(t *testing.T) {
	key := regexp.MustCompile(`^liqo-autoscaler\.io/[a-z-]+$`)
	keys := []string{"liqo-autoscaler.io/worker-image"} // the chart uses this label
	require.Contains(t, document(t, charts[0]+"/templates/worker.yaml"), keys[0])
	eachSource(t, func(_ string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && key.MatchString(text) {
					keys = append(keys, text)
				}
			}
			return true
		})
	})
	slices.Sort(keys)
	var named []string
	for _, head := range []string{"| label | on | value |", "| annotation | on | value |",
		"| finalizer | on | meaning |"} {
		for _, name := range firstColumn(t, "docs/labels.md", head) {
			named = append(named, "liqo-autoscaler.io/"+name)
		}
	}
	slices.Sort(named)
	assert.Equal(t, slices.Compact(keys), slices.Compact(named))
}

// The workflows set every search attribute that a document names. The chart's README names all search attributes.
func TestDocumentedSearchAttributes(t *testing.T) {
	named := regexp.MustCompile(`\bLiqo(?:Group|Instance|Provider|Phase|Hub|Node)\b`)
	found := 0
	for _, path := range documents(t) {
		if path == "CHANGELOG.md" {
			continue // this document names attributes that were removed
		}
		for _, name := range named.FindAllString(document(t, path), -1) {
			found++
			assert.Contains(t, workflows.SearchAttributes, name, path)
		}
	}
	require.NotZero(t, found)
	for _, name := range workflows.SearchAttributes {
		assert.Contains(t, document(t, charts[0]+"/README.md"), "`"+name+"`")
	}
}

// `make help` lists every suite of the module e2e. Each suite that a document names exists.
func TestDocumentedSuites(t *testing.T) {
	makefile := document(t, "e2e/Makefile")
	all := regexp.MustCompile(`(?m)^all: (.*)$`).FindStringSubmatch(makefile)
	help := regexp.MustCompile(`(?m)^e2e: ## (.*)$`).FindStringSubmatch(document(t, "Makefile"))
	require.NotNil(t, all)
	require.NotNil(t, help)
	for _, suite := range strings.Fields(all[1]) {
		if suite != "harness" { // the other suites include the harness
			assert.Regexp(t, `\b`+suite+`\b`, help[1])
		}
	}
	named := regexp.MustCompile(`make e2e SUITE=([a-z-]+)`)
	found := 0
	for _, path := range documents(t) {
		for _, m := range named.FindAllStringSubmatch(document(t, path), -1) {
			found++
			assert.Regexp(t, `(?m)^`+m[1]+`:`, makefile, path)
		}
	}
	require.Greater(t, found, 10)
}

// TestDocumentedEvents checks that docs/operations.md lists exactly the reasons of our Events.
func TestDocumentedEvents(t *testing.T) {
	var reasons []string
	constant := regexp.MustCompile(`(?m)^\sReason\w+\s+Reason\s+= "(\w+)"`)
	for _, m := range constant.FindAllStringSubmatch(document(t, "activities/events.go"), -1) {
		reasons = append(reasons, m[1])
	}
	require.Greater(t, len(reasons), 15)
	slices.Sort(reasons)
	named := firstColumn(t, "docs/operations.md", "| reason | about | means |")
	slices.Sort(named)
	assert.Equal(t, reasons, named)
}

// TestFilesOfChangesExist checks that each path on the page docs/contributing/changes.md exists.
func TestFilesOfChangesExist(t *testing.T) {
	page := document(t, "docs/contributing/changes.md")
	folders := strings.NewReplacer("chart/", charts[0]+"/", "show/", "cmd/liqo-autoscaler/show/")
	found := 0
	for _, m := range regexp.MustCompile("`([a-z0-9./_-]+/[A-Za-z0-9./_-]+)`").FindAllStringSubmatch(page, -1) {
		path := m[1]
		if strings.HasPrefix(path, "chart/") || strings.HasPrefix(path, "show/") {
			path = folders.Replace(path)
		}
		found++
		_, err := os.Stat("../../" + path)
		assert.NoError(t, err)
	}
	require.Greater(t, found, 40)
}

// docs/reference/workflows.md lists exactly the signals, queries and updates that exist.
func TestDocumentedMessages(t *testing.T) {
	names := []string{workflows.SignalPauseObserver, workflows.SignalBills, workflows.QueryBills}
	constant := regexp.MustCompile(`(?m)^\s(?:Signal|Query)\w+\s*= "([a-z-]+)"`)
	for _, m := range constant.FindAllStringSubmatch(document(t, "workflows/names.go"), -1) {
		names = append(names, m[1])
	}
	require.Greater(t, len(names), 10)
	for _, verb := range fleet.Verbs {
		names = append(names, string(verb))
	}
	named := firstColumn(t, "docs/reference/workflows.md", "| message | kind | to | from | meaning |")
	slices.Sort(names)
	assert.Equal(t, names, named)
}
