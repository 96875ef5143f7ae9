package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// maxNotRun is the maximum number of steps in the two guides that no test runs. These steps install kind and liqoctl,
// run `kind load`, install the chart of Cluster Autoscaler (one step in each guide), and verify a release (two
// steps).
const maxNotRun = 6

// In the guides to the first node, tests run almost every step. At most maxNotRun steps are not run, and each of
// these states its reason.
func TestAtMostSixStepsOfTheGuidesAreNotRun(t *testing.T) {
	found := 0
	for _, path := range []string{"docs/install.md", "docs/quickstart-kind.md"} {
		for _, s := range steps(document(t, path)) {
			if s.mark == "not run" {
				found++
				assert.NotEmpty(t, s.more, "%s: a step that is not run has no reason: %s", path, s.text)
			}
		}
	}
	assert.LessOrEqual(t, found, maxNotRun)
}
