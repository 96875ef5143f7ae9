package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const source = `// Package p is a comment.
package p

/* two
lines */ import "os" // counts

var text = ` + "`one\n\nthree`" + `

func f() {
	// nothing

	os.Exit(1)
}
`

func TestOnlyLinesWithCodeCount(t *testing.T) {
	require.Equal(t, 7, count([]byte(source)))
	require.Zero(t, count([]byte("\n// only this\n")))
}

func TestOnlyTheProductCounts(t *testing.T) {
	root := t.TempDir()
	for _, f := range []string{"main.go", "main_test.go", "workflows/a.go", "workflows/b.go", "e2e/x.go",
		"internal/testkit/deep/x.go", ".cache/x.go"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, f)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, f), []byte(source), 0o600))
	}
	packages, err := countAll(root)
	require.NoError(t, err)
	require.Equal(t, map[string]int{".": 7, "workflows": 14}, packages)
}
