package defect_test

import (
	"flag"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/defect"
)

var breakIt = flag.Bool("defects", false, "break the code as testdata says, and have the models find it")

const root = "../../.."

func TestDefectsFit(t *testing.T) {
	of := map[string]int{}
	for _, d := range defect.Load(t, "testdata", root) {
		d.Fits(t)
		of[d.Test]++
	}
	for test, n := range of {
		require.GreaterOrEqual(t, n, 3, "%s has fewer than three defects to find", test)
	}
}

// TestModelsFindDefects makes each mistake in the code. The test that is named in the mistake's file must then fail.
// TestModelsFindDefects runs only with -defects, and changes no file.
func TestModelsFindDefects(t *testing.T) {
	if !*breakIt {
		t.Skip("takes minutes: CONTRIBUTING.md has the command")
	}
	for _, d := range defect.Load(t, "testdata", root) {
		t.Run(d.Name, func(t *testing.T) {
			run := exec.CommandContext(t.Context(), d.Build(t, d.Package), "-test.run", "^"+d.Test+"$")
			run.Dir = d.Package
			out, err := run.CombinedOutput()
			require.Error(t, err, "%s does not find it\n%s", d.Test, out)
			require.Contains(t, string(out), "--- FAIL: "+d.Test+" ", "%s fails otherwise\n%s", d.Test, out)
			t.Logf("%s finds it: %s", d.Test, seed.FindString(string(out)))
		})
	}
}

// seed matches the seed of the case that finds a mistake. A test that judges all cases together prints no seed.
var seed = regexp.MustCompile(`LIQO_AUTOSCALER_TEST_SEED=\d+/\d+`)
