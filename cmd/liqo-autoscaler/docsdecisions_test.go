package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const decisions = "docs/contributing/decisions.md"

var (
	decision = regexp.MustCompile(`(?m)^### (.*)\n\n20\d\d-\d\d-\d\d[.,] `)
	place    = regexp.MustCompile("`([\\w.-]+/[\\w./-]+)`")
)

func TestEachDecisionHasDateReasonAndPlace(t *testing.T) {
	parts := strings.Split(document(t, decisions), "\n### ")[1:]
	require.Greater(t, len(parts), 50)
	for _, part := range parts {
		title, _, _ := strings.Cut(part, "\n")
		require.Regexp(t, decision, "### "+part, "%s begins with its date, such as 2026-11-22", title)
		require.Contains(t, part, "\n- **Why**: ", title)
		_, where, found := strings.Cut(part, "\n- **Where**: ")
		require.True(t, found, "%s has no Where", title)
		where, _, _ = strings.Cut(where, "\n\n")
		for _, m := range place.FindAllStringSubmatch(where, -1) {
			_, err := os.Stat(filepath.Join("../..", m[1]))
			require.NoError(t, err, "%s: the named place does not exist: write the present one", title)
		}
	}
}

func TestDecisionsAreInTheTableOfContents(t *testing.T) {
	text := document(t, decisions)
	for _, h := range heading.FindAllStringSubmatch(text, -1)[1:] {
		require.Contains(t, text, "- ["+h[1]+"](#"+anchor(h[1])+")\n", "the table of contents lacks a heading")
	}
}
