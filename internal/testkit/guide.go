package testkit

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// GuideStep is a step of a guide that a test follows. Text is the content of the file File or, if File is "", shell
// commands.
type GuideStep struct{ File, Text string }

var guideStep = regexp.MustCompile("(?s)<!-- (?:ran here: make deploy-check|rendered and validated: (\\S+)) -->\n\n" +
	"   ```[a-z]*\n(.*?)\n   ```")

// Guide returns the steps of a page of the documents, in order. They are the files that the page marks as `rendered
// and validated`, and the commands that it marks as `ran here: make deploy-check`.
func Guide(t testing.TB, path string) (steps []GuideStep) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, m := range guideStep.FindAllStringSubmatch(string(text), -1) {
		steps = append(steps, GuideStep{m[1], strings.ReplaceAll("\n"+m[2], "\n   ", "\n")})
	}
	return steps
}
