package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	conformance "github.com/liqo-autoscaler/liqo-autoscaler/cmd/externalgrpc-conformance/command"
	agent "github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler-agent/command"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
)

// documents returns the paths of all documents, relative to the root of the repository. It includes the subfolders of
// docs.
func documents(t *testing.T) []string {
	t.Helper()
	files := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md",
		"deploy/helm/liqo-autoscaler/README.md",
		"deploy/helm/liqo-autoscaler-agent/README.md"}
	found := len(files)
	require.NoError(t, fs.WalkDir(os.DirFS("../.."), "docs", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
		return err
	}))
	require.Greater(t, len(files), found)
	return files
}

func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", path))
	require.NoError(t, err)
	return string(text)
}

var (
	fenced    = regexp.MustCompile("(?s)\n *```[a-z]*\n(.*?)\n *```")
	inline    = regexp.MustCompile("`([^`]+)`")
	ours      = regexp.MustCompile(`(?:^|[;|(&] ?)(?:bin/)?((?:liqo-autoscaler|liqo-autoscaler-agent) (?:[a-z]|--).*|externalgrpc-conformance .*)`)
	link      = regexp.MustCompile(`\]\(([^)#: ]*)(?:#([^)]*))?\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	ends      = regexp.MustCompile(` (?:#|>|<|\||\\$|&&|\.\.\.).*$| \\$`)
	anything  = regexp.MustCompile(`<[^<> ][^<>]*>`)
	testFunc  = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	namedTest = regexp.MustCompile(`\bTest[A-Z]\w*\*?`)
	storyName = regexp.MustCompile(`\bTestStories/([\w-]+)`)
	noAnchor  = regexp.MustCompile("[^a-z0-9 _-]")
)

// commands returns the command lines of our programs in a document. It finds them in code blocks, where it joins
// continued lines, and in sentences.
func commands(text string) (lines []string) {
	for _, block := range fenced.FindAllStringSubmatch(text, -1) {
		for _, line := range strings.Split(strings.ReplaceAll(block[1], "\\\n", " "), "\n") {
			if m := ours.FindStringSubmatch(strings.TrimPrefix(strings.TrimSpace(line), "$ ")); m != nil {
				lines = append(lines, m[1])
			}
		}
	}
	for _, m := range inline.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		if m := ours.FindStringSubmatch(strings.Join(strings.Fields(m[1]), " ")); m != nil {
			lines = append(lines, m[1])
		}
	}
	return lines
}

// programs maps the name of each of our programs to the function that creates its command.
var programs = map[string]func() *cobra.Command{"liqo-autoscaler": newRoot, "liqo-autoscaler-agent": agent.New,
	"externalgrpc-conformance": conformance.New}

// Our programs accept each of their command lines that a document contains.
func TestDocumentedCommands(t *testing.T) {
	found := 0
	for _, path := range documents(t) {
		for _, line := range commands(document(t, path)) {
			if strings.HasPrefix(line, "liqo-autoscaler is up after") {
				continue // a line of dev's output
			}
			words := strings.Fields(ends.ReplaceAllString(anything.ReplaceAllString(line, "x"), ""))
			cmd, _, err := programs[words[0]]().Find(words[1:])
			require.NoError(t, err, "%s: %s", path, line)
			if len(words) == 1 || words[0] == "liqo-autoscaler" && cmd == cmd.Root() {
				continue // a sentence
			}
			found++
			assert.NoError(t, misuse(words), "%s: %s", path, line)
		}
	}
	require.Greater(t, found, 40)
}

// Every link within the repository leads to an existing file. If the link names a heading, the file has this heading.
func TestDocumentedLinks(t *testing.T) {
	found := 0
	for _, path := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(document(t, path), -1) {
			target := path
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(path), m[1])
			}
			_, err := os.Stat(filepath.Join("../..", target))
			require.NoError(t, err, "%s links to %s", path, m[0])
			found++
			if m[2] == "" {
				continue
			}
			var anchors []string
			for _, h := range heading.FindAllStringSubmatch(document(t, target), -1) {
				anchors = append(anchors, anchor(h[1]))
			}
			require.Contains(t, anchors, m[2], "%s links to a heading that %s does not have", path, target)
		}
	}
	require.Greater(t, found, 100)
}

// Every test that a document names exists. A name that ends with a star matches all tests with this prefix.
func TestDocumentedTests(t *testing.T) {
	var names []string
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // another test has just removed a file that it created here
			return nil
		case err != nil:
			return err
		case entry.IsDir() && len(entry.Name()) > 2 && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllSubmatch(source, -1) {
			names = append(names, string(m[1]))
		}
		return err
	}))
	found := 0
	for _, path := range documents(t) {
		for _, name := range namedTest.FindAllString(document(t, path), -1) {
			prefix, isPrefix := strings.CutSuffix(name, "*")
			require.True(t, slices.ContainsFunc(names, func(n string) bool {
				return n == name || isPrefix && strings.HasPrefix(n, prefix)
			}), "%s names %s", path, name)
			found++
		}
		for _, story := range storyName.FindAllStringSubmatch(document(t, path), -1) {
			require.FileExists(t, filepath.Join("../../internal/fleet/testdata/stories", story[1]+".txt"), path)
		}
	}
	require.Greater(t, found, 300)
}

// docs/offers.md describes every field of an offer.
func TestDocumentedOffers(t *testing.T) {
	text, offer := document(t, "docs/offers.md"), reflect.TypeFor[discovery.Spec]()
	for i := range offer.NumField() {
		if name, _, _ := strings.Cut(offer.Field(i).Tag.Get("json"), ","); name != "-" {
			require.Regexp(t, "(?m)^\\|[^|]*`"+name+"`", text)
		}
	}
}

// If the last column of a table lists tests, each row of the table names a test.
func TestDocumentedRowsHaveTests(t *testing.T) {
	found := 0
	for _, path := range documents(t) {
		inTable := false
		for line := range strings.Lines(document(t, path)) {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasSuffix(line, "| test |"):
				inTable = true
			case !strings.HasPrefix(line, "|"):
				inTable = false
			case inTable && !strings.HasPrefix(line, "|-"):
				cells := strings.Split(strings.Trim(line, "|"), "|")
				require.Regexp(t, namedTest, cells[len(cells)-1], "%s: %s", path, line)
				found++
			}
		}
	}
	require.Greater(t, found, 10)
}

// anchor returns GitHub's anchor of a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}
