package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// maxNotRun bounds the steps of the two guides that nothing here runs: kind and liqoctl, kind load, the chart of Cluster
// Autoscaler in each guide, and two blocks that verify a release.
const maxNotRun = 6

// At most six steps of the guides to the first node run nowhere, and each has its reason.
func TestFewStepsOfTheGuidesAreNotRun(t *testing.T) {
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
