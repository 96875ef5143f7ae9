package fleet_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var breakIt = flag.Bool("defects", false, "break the code as testdata/defects says, and have the explorer find it")

// defect is a deliberate mistake: a file of testdata/defects says after comments the file that it is made in, the
// lines to take away and those to put there instead.
type defect struct {
	name, file, old, new string
}

func defects(t *testing.T) (all []defect) {
	t.Helper()
	paths, err := filepath.Glob("testdata/defects/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		d := defect{name: strings.TrimSuffix(filepath.Base(path), ".txt")}
		for line := range strings.Lines(string(text)) {
			switch line[0] {
			case '#':
			case '-':
				d.old += line[1:]
			case '+':
				d.new += line[1:]
			default:
				d.file = strings.TrimSpace(line)
			}
		}
		all = append(all, d)
	}
	return all
}

// TestDefectsFit holds the list against the code: who changes what a defect breaks changes the defect, too.
func TestDefectsFit(t *testing.T) {
	for _, d := range defects(t) {
		source, err := os.ReadFile(d.file)
		require.NoError(t, err, d.name)
		require.Equal(t, 1, strings.Count(string(source), d.old), "testdata/defects/%s.txt takes lines away that are not "+
			"in %s, or not once: write it anew\n%s", d.name, d.file, d.old)
	}
}

// TestExplorerFindsDefects makes each mistake, and has the explorer find it within its steps: from its own first seed,
// and from three others that are drawn. Only with -defects; it changes no file.
func TestExplorerFindsDefects(t *testing.T) {
	if !*breakIt {
		t.Skip("takes minutes: CONTRIBUTING.md has the command")
	}
	seeds := []uint64{*exploreSeed}
	for range 3 {
		seeds = append(seeds, rand.Uint64N(1_000_000_000))
	}
	for _, d := range defects(t) {
		t.Run(d.name, func(t *testing.T) {
			binary := d.build(t)
			for _, seed := range seeds {
				run := exec.CommandContext(t.Context(), binary, "-test.run", "^TestExplorer$",
					"-seed", fmt.Sprint(seed), "-steps", fmt.Sprint(*exploreSteps))
				out, _ := run.CombinedOutput()
				found := finding.FindString(string(out))
				if found == "" {
					t.Errorf("not found in %d steps from seed %d\n%s", *exploreSteps, seed, out)
				}
				t.Logf("from seed %d: %s", seed, found)
			}
		})
	}
}

var finding = regexp.MustCompile(`seed \d+, mode \d.*`)

// build builds the tests with the mistake in them.
func (d defect) build(t *testing.T) string {
	source, err := os.ReadFile(d.file)
	require.NoError(t, err)
	original, err := filepath.Abs(d.file)
	require.NoError(t, err)
	dir := t.TempDir()
	changed, overlay, binary := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"),
		filepath.Join(dir, "fleet.test")
	broken := strings.Replace(string(source), d.old, d.new, 1)
	require.NoError(t, os.WriteFile(changed, []byte(broken), 0o600))
	raw, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, raw, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary,
		".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}
