package file_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/file"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func document(names ...string) string {
	var b strings.Builder
	b.WriteString("offers:\n")
	for _, name := range names {
		fmt.Fprintf(&b, "- name: %s\n  credentials: {kubeconfigFile: kube/%s}\n  lendable: {cpu: 4, memory: 8Gi, pods: "+
			"110}\n  labels: {country: it}\n", name, name)
	}
	return b.String()
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func list(t *testing.T, s *file.Source) (names []string, offers []fleet.Offer, problems []discovery.Problem) {
	t.Helper()
	offers, problems, err := s.List(t.Context())
	require.NoError(t, err)
	for _, o := range offers {
		names = append(names, o.Name)
	}
	return names, offers, problems
}

func TestListReadsTheCurrentFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "offers.yaml")
	write(t, path, document("b", "a"))
	s, err := file.Open(path)
	require.NoError(t, err)
	names, offers, problems := list(t, s)
	require.Equal(t, []string{"a", "b"}, names)
	require.Empty(t, problems)
	require.Equal(t, filepath.Join(filepath.Dir(path), "kube", "a"), offers[0].Credentials.KubeconfigFile,
		"relative to the file")

	offers[0].Labels["country"] = "fr"
	_, again, _ := list(t, s)
	require.Equal(t, "it", again[0].Labels["country"], "callers own what they get")

	write(t, path, document("c"))
	names, _, _ = list(t, s)
	require.Equal(t, []string{"c"}, names)
}

func TestBrokenVersionIsReportedUntilRepaired(t *testing.T) {
	path := filepath.Join(t.TempDir(), "offers.yaml")
	write(t, path, document("a"))
	s, err := file.Open(path)
	require.NoError(t, err)

	write(t, path, document("b")+"  prise: 3\n  maxNodes: x\n")
	for range 2 {
		names, _, problems := list(t, s)
		require.Equal(t, []string{"a"}, names, "the last good version serves")
		require.Len(t, problems, 1)
		require.Contains(t, problems[0].Message, "offers.yaml has errors; its last valid version stays in use:\n")
		require.Contains(t, problems[0].Message, "line 6: offers[0].prise: unknown field")
		require.Contains(t, problems[0].Message, `line 7: offers[0].maxNodes: got "x", want a whole number`)
	}

	require.NoError(t, os.Remove(path))
	names, _, problems := list(t, s)
	require.Equal(t, []string{"a"}, names)
	require.Contains(t, problems[0].Message, "no such file")

	write(t, path, document("a"))
	names, _, problems = list(t, s)
	require.Equal(t, []string{"a"}, names)
	require.Empty(t, problems, "the same content as the last good one is good again")
}

func TestErrorsOfABrokenFileAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "offers.yaml")
	write(t, path, document("a"))
	s, err := file.Open(path)
	require.NoError(t, err)
	write(t, path, "offers:\n"+strings.Repeat("- {}\n", 200))
	_, _, problems := list(t, s)
	require.Len(t, strings.Split(problems[0].Message, "\n"), 42)
	require.Contains(t, problems[0].Message, "\nand 560 more")
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "offers.yaml")
	for content, want := range map[string]string{
		"":                       "the document is empty",
		"offers: {}":             "offers: got a mapping, want a list",
		"nodeGroups: []":         "this is a file of node groups: `liqo-autoscaler config validate` checks it",
		document("a", "a"):       `offers[1].name: "a" is also the name of offers[0]`,
		strings.Repeat("#", 5e6): "larger than 4 MiB",
	} {
		write(t, path, content)
		_, err := file.Open(path)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "open offers file "+path)
	}
	_, err := file.Open(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestRestoredFileIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "offers.yaml")
	write(t, path, document("a"))
	s, err := file.Open(path)
	require.NoError(t, err)
	require.NoError(t, os.Rename(path, path+".away"))
	_, _, problems := list(t, s)
	require.Len(t, problems, 1)
	require.NoError(t, os.Rename(path+".away", path))
	_, _, problems = list(t, s)
	require.Empty(t, problems)
}

// The kubelet updates a volume by swapping a symlink. The source opens the file by its path each time.
func TestSwappedSymlinkIsFollowed(t *testing.T) {
	dir := t.TempDir()
	for _, v := range []string{"v1", "v2"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, v), 0o700))
		write(t, filepath.Join(dir, v, "offers.yaml"), document("in-"+v))
	}
	link := filepath.Join(dir, "data")
	require.NoError(t, os.Symlink("v1", link))
	s, err := file.Open(filepath.Join(link, "offers.yaml"))
	require.NoError(t, err)
	require.NoError(t, os.Symlink("v2", link+"2"))
	require.NoError(t, os.Rename(link+"2", link))
	names, offers, _ := list(t, s)
	require.Equal(t, []string{"in-v2"}, names)
	require.Equal(t, filepath.Join(link, "kube", "in-v2"), offers[0].Credentials.KubeconfigFile)
}

type identify struct{}

func (identify) Identify(_ context.Context, c fleet.Credentials) (string, error) {
	return "id-" + filepath.Base(c.KubeconfigFile), nil
}

func TestOffersOfAFileAreIdentified(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "offers.yaml")
	write(t, path, document("a", "b"))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "kube"), 0o700))
	write(t, filepath.Join(dir, "kube", "b"), "kubeconfig")
	s, err := file.Open(path)
	require.NoError(t, err)
	offers, problems, err := discovery.Resolve(s, identify{}, discovery.Options{}).Offers(t.Context())
	require.NoError(t, err)
	require.Len(t, offers, 1)
	require.Equal(t, "id-b", offers[0].Provider)
	require.Len(t, problems, 1)
	require.Equal(t, "a", problems[0].Offer)
}
