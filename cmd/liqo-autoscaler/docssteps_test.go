package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

var docsCheck = flag.Bool("docs-check", false, "run the steps of the guides that are marked as run here (make docs-check)")

// guides are the documents in which each step is marked as run or not run. TestGuides runs them in this order.
var guides = []string{"README.md", "docs/start/try-it.md", "docs/install.md", "docs/quickstart-kind.md", "docs/pending-pods.md",
	"docs/other-autoscalers.md",
	"docs/production.md", "docs/upgrade.md", "docs/uninstall.md"}

// step is a block in a guide: commands, the output of commands, or a file. mark is the mark before the block, as in
// `<!-- ran here -->` or `*not run: no Docker here*`, and more is the text after the mark. The marks mean:
//   - ran here: TestGuides runs the commands. With "in the background" they run until the guide ends. With "make ...",
//     this command runs them instead of TestGuides.
//   - output: the previous commands print these lines, in this order. A word with a digit matches any word.
//   - rendered and validated: the block is a file with this name, or commands that render manifests.
//   - not run
type step struct{ mark, more, language, text string }

var (
	fence = regexp.MustCompile("^( *)```([a-z]*)$")
	mark  = regexp.MustCompile(`(?:<!-- |\*)(ran here|output|rendered and validated|not run)(?:[:,] ([^*>]*?))?(?: -->|\*)`)
)

// steps returns the blocks of a guide, except blocks in the languages text and mermaid. Each mark applies to the
// block that follows it.
func steps(text string) (found []step) {
	var before, block []string
	var inside *step
	indent := ""
	for _, line := range strings.Split(text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case m == nil && inside == nil:
			before = append(before, line)
		case m == nil:
			block = append(block, strings.TrimPrefix(line, indent))
		case inside == nil:
			inside, indent, block = &step{language: m[2]}, m[1], nil
			words := strings.Fields(strings.Join(before, " "))
			if marks := mark.FindAllStringSubmatch(strings.Join(words, " "), -1); marks != nil {
				inside.mark, inside.more = marks[len(marks)-1][1], marks[len(marks)-1][2]
			}
			before = nil
		default:
			inside.text = strings.Join(block, "\n")
			if inside.language != "text" && inside.language != "mermaid" {
				found = append(found, *inside)
			}
			inside = nil
		}
	}
	return found
}

// Every step of a guide has a mark, and each file in a guide is valid.
func TestStepsHaveMarks(t *testing.T) {
	found := 0
	for _, path := range guides {
		for _, s := range steps(document(t, path)) {
			found++
			require.NotEmpty(t, s.mark, "%s: a step has no mark: %s", path, s.text)
			if s.language == "yaml" {
				validate(t, path, s.text)
			}
		}
	}
	require.Greater(t, found, 40)
}

// validate decodes each YAML document strictly as its Kubernetes type.
func validate(t *testing.T, where, text string) {
	t.Helper()
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, part := range strings.Split(text, "\n---\n") {
		var object struct{ APIVersion, Kind string }
		require.NoError(t, yaml.Unmarshal([]byte(part), &object), "%s: %s", where, part)
		group, _, _ := strings.Cut(object.APIVersion, "/")
		if object.Kind == "" || strings.Contains(strings.TrimSuffix(group, ".k8s.io"), ".") {
			continue // one of our own files, or an object of a CRD
		}
		_, _, err := strict.Decode([]byte(part), nil, nil)
		require.NoError(t, err, "%s: %s", where, part)
	}
}

// TestOutputMayDifferInNumbersAndNames checks the comparison of an output with a guide. Numbers, names and times may
// differ between runs. Words must be the same.
func TestOutputMayDifferInNumbersAndNames(t *testing.T) {
	printed := "x\n   0.02s  NodeGroupTargetSize(standard) = 0\n  standard-a1-1  Ready\n"
	names := map[string]string{}
	require.Empty(t, missing("   0.91s  NodeGroupTargetSize(standard) = 0\n...\n  standard-zz-7  Ready", printed, names))
	require.Equal(t, "standard-a1-1", names["standard-zz-7"])
	require.Equal(t, "  standard-zz-7  Failed", missing("  standard-zz-7  Failed", printed, names))
	require.Equal(t, "x", missing("standard-a1-1 Ready\nx", printed, names), "the order counts")
}

var hasDigit = regexp.MustCompile(`\d`)

// missing searches the output for the lines of shape, in their order. It returns the first line of shape that is
// missing, or "" if it finds all lines. A line counts as missing if it does not follow the line that was found last.
// It ignores empty lines and "...". A word of shape with a digit matches any word. names records which word of the
// output matched which word of shape.
func missing(shape, printed string, names map[string]string) string {
	lines := strings.Split(printed, "\n")
	for _, want := range strings.Split(shape, "\n") {
		var words []string
		for _, word := range strings.Fields(want) {
			if hasDigit.MatchString(word) {
				words = append(words, `\S+`)
			} else {
				words = append(words, regexp.QuoteMeta(word))
			}
		}
		if len(words) == 0 || want == "..." {
			continue
		}
		line := regexp.MustCompile(`^\s*` + strings.Join(words, `\s+`) + `\s*$`)
		for len(lines) > 0 && !line.MatchString(lines[0]) {
			lines = lines[1:]
		}
		if len(lines) == 0 {
			return want
		}
		for i, got := range strings.Fields(lines[0]) {
			names[strings.Fields(want)[i]] = got
		}
		lines = lines[1:]
	}
	return ""
}

// TestGuides runs the guides in a copy of the repository. The tools in bin are not built again there.
func TestGuides(t *testing.T) {
	if !*docsCheck {
		t.Skip("make docs-check runs it")
	}
	for _, address := range []string{"127.0.0.1:7233", "127.0.0.1:8086", ":8233", ":9090", ":8081"} {
		l, err := net.Listen("tcp", address)
		require.NoError(t, err, "stop what uses the ports of make run")
		require.NoError(t, l.Close())
	}
	folder := t.TempDir()
	copyOf := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c",
		`git ls-files -co --exclude-standard -z -- . ':!bin' | tar --null -T- -c | tar -x -C "$1"
		mkdir "$1/bin"; for tool in temporal helm; do if [ -x bin/$tool ]; then ln -s "$PWD/bin/$tool" "$1/bin"; fi; done`, "-", folder)
	copyOf.Dir = "../.."
	out, err := copyOf.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, path := range guides {
		t.Run(path, func(t *testing.T) {
			(&guide{t: t, folder: folder, names: map[string]string{}}).run(steps(document(t, path)))
		})
	}
}

// guide is the run of a guide.
type guide struct {
	t       *testing.T
	folder  string
	printed func() string     // the output of the last command so far
	names   map[string]string // maps words of the guide to the words of this run
}

func (g *guide) run(all []step) {
	g.shell("make build bin/helm temporal")
	for _, s := range all {
		switch {
		case s.mark == "not run" || strings.HasPrefix(s.more, "make "):
			g.t.Logf("%s %s:\n%s", s.mark, s.more, s.text)
		case s.mark == "rendered and validated" && s.language == "yaml":
			require.NoError(g.t, os.WriteFile(filepath.Join(g.folder, filepath.Base(s.more)), []byte(s.text), 0o600))
		case s.mark == "rendered and validated":
			g.render(s.text)
		case s.mark == "output":
			g.expect(s.text, 15*time.Minute)
		case s.more == "in the background":
			g.background(s.text)
		case strings.HasPrefix(s.text, "$ "):
			for _, part := range strings.Split("\n"+s.text, "\n$ ")[1:] {
				command, shape, _ := strings.Cut(part, "\n")
				g.shell(g.asHere(command))
				g.expect(shape, time.Second)
			}
		default:
			g.shell(s.text)
		}
	}
}

// expect compares the output of the last command with the shape. It waits for the output, because a command in the
// background may first have to build.
func (g *guide) expect(shape string, limit time.Duration) {
	testkit.Until(g.t, limit, "the guide's output is printed", func() error {
		if line := missing(shape, g.printed(), g.names); line != "" {
			return fmt.Errorf("not printed: %s\nprinted:\n%s", line, g.printed())
		}
		return nil
	})
}

// asHere returns a command of the guide in which names are replaced by the names of this run, for example the name of
// the created instance.
func (g *guide) asHere(command string) string {
	words := strings.Split(command, " ")
	for i, word := range words {
		if here := g.names[word]; here != "" && strings.Contains(word, "-") {
			words[i] = here
		}
	}
	return strings.Join(words, " ")
}

// render replaces a command that would change a cluster by a command that only prints the manifests. It then
// validates the manifests.
func (g *guide) render(text string) {
	for _, line := range strings.Split(strings.ReplaceAll(text, "\\\n", ""), "\n") {
		line, applied := strings.CutSuffix(line, " | kubectl apply -f -")
		helm := strings.HasPrefix(line, "helm upgrade --install ")
		require.True(g.t, applied || helm, "nothing renders this: %s", line)
		g.shell(strings.Replace(line, "helm upgrade --install ", "helm template --kube-version v1.33.1 ", 1) + " 2>/dev/null")
		validate(g.t, line, g.printed())
	}
}
