// Package defect builds tests of code into which it has put one deliberate mistake. The tests must find the mistake.
// The package changes no file of the repository.
package defect

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Defect is a deliberate mistake. A text file describes it, with comments (#), the lines to remove (-), and the lines
// that replace them (+). One further line contains the path of the source file to change, and the package and the
// name of the test that must find the mistake.
type Defect struct {
	Name, File string
	// Package and Test name the test that must find the mistake. Package is the root and Test is "" if the text file
	// contains only a path.
	Package, Test string

	old, new string
}

// Load reads the defects from the text files in a folder. The paths in these files are relative to root.
func Load(t testing.TB, dir, root string) (all []Defect) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		d := Defect{Name: strings.TrimSuffix(filepath.Base(path), ".txt")}
		for line := range strings.Lines(string(text)) {
			switch line[0] {
			case '#':
			case '-':
				d.old += line[1:]
			case '+':
				d.new += line[1:]
			default:
				words := append(strings.Fields(line), "", "")
				d.File, d.Package, d.Test = filepath.Join(root, words[0]), filepath.Join(root, words[1]), words[2]
			}
		}
		all = append(all, d)
	}
	return all
}

// Fits fails the test unless the lines that the defect removes occur exactly once in the source file. If these lines
// change in the source file, the text file must be updated.
func (d Defect) Fits(t testing.TB) {
	t.Helper()
	source, err := os.ReadFile(d.File)
	require.NoError(t, err, d.Name)
	require.Equal(t, 1, strings.Count(string(source), d.old), "%s.txt removes lines that are not in %s exactly once: "+
		"update it\n%s", d.Name, d.File, d.old)
}

// Build builds the tests of the package in folder, with the mistake in the code. It returns the path of the binary.
func (d Defect) Build(t testing.TB, folder string) (binary string) {
	t.Helper()
	source, err := os.ReadFile(d.File)
	require.NoError(t, err)
	original, err := filepath.Abs(d.File)
	require.NoError(t, err)
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	binary = filepath.Join(dir, "broken.test")
	broken := strings.Replace(string(source), d.old, d.new, 1)
	require.NoError(t, os.WriteFile(changed, []byte(broken), 0o600))
	raw, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, raw, 0o600))
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, ".")
	build.Dir = folder
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}
