package testkit

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// GuideStep is a step of a guide that a test follows: the content of a file, or shell commands without a file.
type GuideStep struct{ File, Text string }

var guideStep = regexp.MustCompile("(?s)<!-- (?:ran here: make deploy-check|rendered and validated: (\\S+)) -->\n\n" +
	"   ```[a-z]*\n(.*?)\n   ```")

// Guide returns the steps of a page of the documents, in order: the files that the page marks as rendered and
// validated, and the commands that it marks as run by make deploy-check.
func Guide(t testing.TB, path string) (steps []GuideStep) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, m := range guideStep.FindAllStringSubmatch(string(text), -1) {
		steps = append(steps, GuideStep{m[1], strings.ReplaceAll("\n"+m[2], "\n   ", "\n")})
	}
	return steps
}
