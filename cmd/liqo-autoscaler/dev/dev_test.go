package dev

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// If the config or the offers file is missing or broken, dev ends before it starts any process. The error names the
// file and the mistake.
func TestDevReportsBrokenFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	missing, broken := filepath.Join(dir, "no", "such.yaml"), write("broken.yaml", "offers: [{name: milan, size: 3}]")
	for says, f := range map[string]devFlags{
		missing:                      {config: missing},
		"open " + missing:            {offers: missing},
		broken:                       {config: broken},
		"offers[0].size":             {offers: broken},
		"offers[0].lendable":         {offers: broken},
		"open offers file " + broken: {offers: broken},
	} {
		f.dir, f.listen, f.temporalScript = t.TempDir(), "127.0.0.1:0", missing
		c := &connect.Common{Log: cli.Log{Level: "info"}, Temporal: connect.Flags{Address: "127.0.0.1:1"}}
		err := run(t.Context(), c, f, io.Discard)
		require.ErrorContains(t, err, says)
	}
}

// dev simulates a user's own groups and offers, including an offer that appears while dev runs.
func TestDevUsesOwnFiles(t *testing.T) {
	dir := t.TempDir()
	offers := filepath.Join(dir, "mine.yaml")
	write := func(names ...string) {
		content := "offers:\n"
		for _, name := range names {
			content += fmt.Sprintf("- {name: %s, credentials: {kubeconfigFile: none.yaml}, "+
				"lendable: {cpu: 4, memory: 8Gi, pods: 110}}\n", name)
		}
		require.NoError(t, os.WriteFile(offers, []byte(content), 0o600))
	}
	write("rome")
	p, err := openDev(t.Context(), devFlags{dir: dir, offers: offers})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "nodegroups.yaml"), p.configPath)
	for _, names := range [][]string{{"rome"}, {"bari", "rome"}} {
		write(names...)
		found, problems, err := p.offers.Offers(t.Context())
		require.NoError(t, err)
		require.Empty(t, problems)
		var providers []string
		for _, o := range found {
			providers = append(providers, o.Provider)
			require.NoError(t, p.backend.Establish(t.Context(), fleet.Provider{ID: o.Provider, Credentials: o.Credentials}, nil))
		}
		require.Equal(t, names, providers)
	}
}

// If Temporal cannot start, `make run` ends immediately and reports the reason.
func TestDevReportsWhyTemporalDoesNotStart(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "temporal.sh")
	fails := []byte("echo 'listen tcp 127.0.0.1:8233: bind: address already in use'; exit 1\n")
	require.NoError(t, os.WriteFile(script, fails, 0o600))
	address := testkit.FreePorts(t, 1)[0]
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := run(ctx, &connect.Common{Log: cli.Log{Level: "info"}, Temporal: connect.Flags{Address: address}},
		devFlags{dir: dir, listen: "127.0.0.1:0", temporalScript: script, uiPort: "8233"}, io.Discard)
	require.NoError(t, ctx.Err(), "dev waited for a Temporal that had ended")
	require.ErrorContains(t, err, "8233: bind: address already in use")
}

// dev prints commands that the user can run next. They have the addresses and the files of the running dev.
func TestCommandsThatDevPrintsWork(t *testing.T) {
	t.Chdir("../../..")
	usual := devFlags{dir: defaultDir, listen: defaultListen}
	demo, watch := usual.tries(connect.DefaultAddress, "default")
	require.Equal(t, []string{"make demo", "make watch"}, []string{demo, watch})
	elsewhere := devFlags{dir: "x", listen: "127.0.0.1:1"}
	demo, watch = elsewhere.tries("127.0.0.1:2", "edge")
	require.Equal(t, os.Args[0]+" demo --address 127.0.0.1:1 --temporal-address 127.0.0.1:2 --hub edge", demo)
	require.Equal(t, os.Args[0]+" status --watch --market-file x/market.json --temporal-address 127.0.0.1:2 --hub edge",
		watch)
	t.Chdir(t.TempDir())
	demo, _ = usual.tries(connect.DefaultAddress, "")
	require.Equal(t, os.Args[0]+" demo", demo)
}

// If the Temporal CLI is missing, dev first prints that building the CLI takes minutes. `make temporal` prints this,
// too, although it hides stdout.
func TestBuildOfTheCLIIsAnnounced(t *testing.T) {
	script, err := os.ReadFile("../../../temporal-dev.sh")
	require.NoError(t, err)
	folder := t.TempDir()
	tools := filepath.Join(folder, "tools")
	require.NoError(t, os.Mkdir(tools, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, temporalScript), script, 0o600))
	for _, tool := range []string{"bash", "dirname"} {
		path, err := exec.LookPath(tool)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(tools, tool)))
	}
	fails := []byte("#!" + filepath.Join(tools, "bash") + "\necho compiling >&2\nexit 1\n")
	require.NoError(t, os.WriteFile(filepath.Join(tools, "go"), fails, 0o700)) //nolint:gosec // a program
	t.Chdir(folder)
	t.Setenv("PATH", tools)
	var out testkit.Buffer
	_, err = installTemporal(t.Context(), filepath.Join(folder, "bin", "program"), &out)
	require.ErrorContains(t, err, "install the Temporal CLI by "+temporalScript)
	require.Regexp(t, `^building the Temporal CLI with its dev server and UI, ./bin/temporal v\S+: under 4 minutes, once\ncompiling\n$`,
		out.String())
}

// dev finds the script that starts Temporal in the working directory, or else in the repository that contains the
// program.
func TestDevFindsItsScript(t *testing.T) {
	dir := t.TempDir()
	here, repository := filepath.Join(dir, "here"), filepath.Join(dir, "repository")
	for _, folder := range []string{here, repository} {
		require.NoError(t, os.Mkdir(folder, 0o700))
	}
	_, err := findScript(here, repository)
	require.ErrorContains(t, err, "temporal-dev.sh, which starts one, is not in "+here+" or "+repository)
	for _, folder := range []string{repository, here} {
		want := filepath.Join(folder, temporalScript)
		require.NoError(t, os.WriteFile(want, nil, 0o600))
		found, err := findScript(here, repository)
		require.NoError(t, err)
		require.Equal(t, want, found)
	}
}
