package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const source = `package p

type phase int

const (
	pending phase = iota
	ready
)

func f(n int, err error) (phase, error) {
	if n < 3 && err != nil {
		return ready, err
	}
	n = n + 1
	log.Info("not this")
	activity.GetLogger(ctx).Warn("nor this", "error", err)
	for range n {
		continue
	}
	return p.pending, nil
}
`

func TestSitesOfAFileAreFound(t *testing.T) {
	e := enums{}
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
	require.NoError(t, err)
	e.add(f)
	sites, err := sitesOf("p.go", []byte(source), e)
	require.NoError(t, err)
	var got []string
	for _, s := range sites {
		got = append(got, s.what)
		changed := s.apply([]byte(source))
		require.NotEqual(t, source, string(changed))
		_, err := parser.ParseFile(token.NewFileSet(), "p.go", changed, 0)
		require.NoError(t, err, s.what)
	}
	require.ElementsMatch(t, []string{
		"`n < 3 && err != nil` becomes `!(n < 3 && err != nil)`", "`&&` becomes `||`", "`<` becomes `<=`", "`3` becomes `4`",
		"`!=` becomes `==`", "`ready` becomes `pending`", "`err` becomes `nil`", "`n = n + 1` removed", "`+` becomes `-`",
		"`1` becomes `2`", "`continue` removed", "`pending` becomes `ready`",
	}, got)
}

// This test creates a module with one function. The module's test detects a change of the condition, but not a change
// of the boundary.
func TestKilledSurvivedAndUnbuilt(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{
		"go.mod": "module m\n\ngo 1.25\n",
		"p/p.go": "package p\n\nfunc Small(n int) string {\n\tif n < 3 {\n\t\treturn \"small\"\n\t}\n\treturn " +
			"\"big\"\n}\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestSmall(t *testing.T) {\n\tif Small(1) != \"small\" " +
			"{\n\t\tt.Fatal()\n\t}\n}\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	}
	tests, err := testsOf(t.Context(), []string{"p"}, []string{"p"})
	require.NoError(t, err)
	require.Equal(t, map[string][]string{"p": {"p"}}, tests)
	sites, err := collect([]string{"p"})
	require.NoError(t, err)
	r := &runner{dir: t.TempDir(), timeout: 60e9, tests: tests}
	got := map[string]result{}
	for _, s := range sites {
		got[s.what], err = r.try(t.Context(), s)
		require.NoError(t, err)
	}
	require.Equal(t, map[string]result{"`n < 3` becomes `!(n < 3)`": killed, "`<` becomes `<=`": survived,
		"`3` becomes `4`": survived}, got)
	broken := sites[0]
	broken.with = "undefined"
	res, err := r.try(t.Context(), broken)
	require.NoError(t, err)
	require.Equal(t, unbuilt, res)
}

// A draw takes the first n changes that compile. It keeps their order, even if several changes are tried
// concurrently.
func TestDrawEndsWithTheFirstThatCompile(t *testing.T) {
	d := &draw{sites: []site{{line: 1}, {line: 2}, {line: 3}, {line: 4}}, n: 2}
	first, _ := d.nextSite()
	second, _ := d.nextSite()
	d.put(first, unbuilt)
	third, ok := d.nextSite()
	require.True(t, ok)
	require.Equal(t, 3, third.line)
	d.put(second, killed)
	d.put(third, survived)
	_, ok = d.nextSite()
	require.False(t, ok)
}

// The reason in survivors.txt applies to one change in one file, even if the line of the change is different now.
func TestReasonAppliesToOneChange(t *testing.T) {
	t.Cleanup(func(was string) func() { return func() { known = was } }(known))
	known = "p/p.go: `3` becomes `4`: nobody counts\n"
	require.Equal(t, "nobody counts", reason(site{file: "p/p.go", line: 7, what: "`3` becomes `4`"}))
	require.Empty(t, reason(site{file: "q/p.go", what: "`3` becomes `4`"}))
	require.Empty(t, reason(site{file: "p/p.go", what: "`3` becomes `5`"}))
}
