package main

import (
	"os"
	"path/filepath"
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
	require.Equal(t, "files=4 arrows=4 a_file=1.00 in_circles=50%", a.String())
}
