package inprocess

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// docs/cluster-autoscaler.md links tests. Each test is in the file that the link names.
func TestDocumentedTestsExist(t *testing.T) {
	docs := filepath.Join("..", "..", "..", "docs")
	text, err := os.ReadFile(filepath.Join(docs, "cluster-autoscaler.md"))
	require.NoError(t, err)
	links := regexp.MustCompile(`\[([^\]]*Test[^\]]*)\]\(([^)]*_test\.go)\)`).FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(links), 38)
	for _, link := range links {
		source, err := os.ReadFile(filepath.Join(docs, link[2]))
		require.NoError(t, err)
		for _, name := range regexp.MustCompile(`Test\w+`).FindAllString(link[1], -1) {
			require.Contains(t, string(source), "func "+name+"(", link[2])
		}
	}
}
