package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestArrows(t *testing.T) {
	root := t.TempDir()
	for name, source := range map[string]string{
		"go.mod":    "module example.org/p\n\ngo 1.26.0\n",
		"alone.go":  "package p\n\ntype alone struct{ text string }\n\nconst size = 1\n\nfunc (alone) do() {}\n",
		"field.go":  "package p\n\nfunc key(x struct{ a, alone int }) int { size := x.alone; return size }\n",
		"method.go": "package p\n\nimport \"slices\"\n\nfunc m(all many) { slices.Clone(all)[0].do() }\n",
		"many.go":   "package p\n\ntype many []alone\n\nfunc back() { m(nil) }\n",
		"a_test.go": "package p\n\nvar _ = size + size\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(source), 0o600))
	}
	a, err := arrowsIn(root)
	require.NoError(t, err)
	require.Equal(t, arrows{"alone.go": {}, "field.go": {}, "method.go": {"many.go": true, "alone.go": true},
		"many.go": {"alone.go": true, "method.go": true}}, a)
	require.Equal(t, "files=4 arrows=4 a_file=1.00 backwards=1", a.String())
}

// The test checks the number of arrows that run backwards in the best order of the files. This number is one for two
// cycles that share an arrow, and two for two separate cycles.
func TestBackwards(t *testing.T) {
	to := func(names ...string) map[string]bool {
		all := map[string]bool{}
		for _, name := range names {
			all[name] = true
		}
		return all
	}
	for want, a := range []arrows{
		{"a": to("b", "c"), "b": to("c"), "c": to()},
		{"a": to("b"), "b": to("c", "d"), "c": to("a"), "d": to("a")},
		{"a": to("b"), "b": to("a"), "c": to("d", "a"), "d": to("c")},
		{"a": to("b", "c"), "b": to("a", "c"), "c": to("a", "b")},
	} {
		_, backwards := a.count()
		require.Equal(t, want, backwards)
	}
}

// In each package of cmd and workflows, at most a tenth of the arrows between the files run backwards. So each
// package can be read in one direction.
func TestFilesOfCommandsAndWorkflowsAreReadOneWay(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the packages")
	}
	root := filepath.Join("..", "..", "..")
	packages, err := countAll(root)
	require.NoError(t, err)
	measured := 0
	for p := range packages {
		if top, _, _ := strings.Cut(p, "/"); top != "cmd" && top != "workflows" {
			continue
		}
		a, err := arrowsIn(filepath.Join(root, p))
		require.NoError(t, err)
		all, backwards := a.count()
		require.LessOrEqual(t, 10*backwards, all, "%s: %s", p, a)
		measured += all
	}
	require.NotZero(t, measured)
}
