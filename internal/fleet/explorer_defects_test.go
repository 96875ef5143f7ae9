package fleet_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"testing"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/defect"
)

var breakIt = flag.Bool("defects", false, "break the code as testdata/defects says, and have the explorer find it")

func TestDefectsFit(t *testing.T) {
	for _, d := range defect.Load(t, "testdata/defects", ".") {
		d.Fits(t)
	}
}

// TestExplorerFindsDefects makes each defect and requires that the explorer finds it within the defect's number of
// steps. The explorer starts from the defect's own first seed and from three more random seeds. The test runs only
// with -defects. It changes no file.
func TestExplorerFindsDefects(t *testing.T) {
	if !*breakIt {
		t.Skip("takes minutes: CONTRIBUTING.md has the command")
	}
	seeds := []uint64{*exploreSeed}
	for range 3 {
		seeds = append(seeds, rand.Uint64N(1_000_000_000))
	}
	for _, d := range defect.Load(t, "testdata/defects", ".") {
		t.Run(d.Name, func(t *testing.T) {
			binary := d.Build(t, ".")
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
