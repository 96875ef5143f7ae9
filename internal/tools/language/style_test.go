package language

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStyleFindsBrokenText checks that Vale reports the broken text in each of the five files in testdata, and
// nothing in the correct text next to it. The variable VALE names the program. If it is not set, the test is skipped.
func TestStyleFindsBrokenText(t *testing.T) {
	vale := os.Getenv("VALE")
	if vale == "" {
		t.Skip("VALE is not set: run make language")
	}
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), vale, "--config", filepath.Join(root, ".vale.ini"), "--output", "line", ".")
	cmd.Dir = "testdata"
	out, err := cmd.Output()
	require.Error(t, err, "Vale fails when it finds something")
	var places []string
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		parts := strings.SplitN(line, ":", 4)
		require.Len(t, parts, 4, line)
		places = append(places, parts[0]+":"+parts[1])
	}
	require.ElementsMatch(t, []string{"comment.go:4", "page.md:3", "values.yaml:1", "second.go:3", "second.md:1"}, places)
}
