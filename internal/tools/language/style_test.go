package language

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStyleFindsBrokenText breaks the text of five files, each in another way, and checks that Vale reports each place
// and nothing in the plain text next to it. VALE names the program; without it the test is skipped.
func TestStyleFindsBrokenText(t *testing.T) {
	vale := os.Getenv("VALE")
	if vale == "" {
		t.Skip("VALE is not set: run make language")
	}
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	folder := t.TempDir()
	for name, text := range map[string]string{
		"comment.go":  "package x\n\n// Grant is what the provider gives.\nvar Grant int\n\nvar x = \"what the\"\n",
		"page.md":     "# Title\n\nThe worker tells the group about its node.\n\n`what is` in code is not checked.\n",
		"values.yaml": "# Nobody reads this value.\nkey: value\n",
		"second.go":   "package x\n\n// Free returns the amount beside the holds.\nfunc Free() {}\n",
		"second.md":   "The budget is over after a minute.\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	cmd := exec.CommandContext(t.Context(), vale, "--config", filepath.Join(root, ".vale.ini"), "--output", "line", ".")
	cmd.Dir = folder
	out, err := cmd.Output()
	require.Error(t, err, "Vale fails when it finds something")
	var places []string
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		parts := strings.SplitN(line, ":", 4)
		require.Len(t, parts, 4, line)
		places = append(places, parts[0]+":"+parts[1])
	}
	require.ElementsMatch(t, []string{"comment.go:3", "page.md:3", "values.yaml:1", "second.go:3", "second.md:1"}, places)
}
