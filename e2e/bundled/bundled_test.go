package bundled

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // to look into Temporal's files

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/player"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/test/simworld"
)

const groupsText = `
nodeGroups:
- id: std
  max: 400
  shape: {cpu: "2", memory: 4Gi, pods: "110"}
  budgets: {peer: 60s, join: 2m, total: 12m, drain: 5s}
`

func measured(what string, value float64, unit string) {
	fmt.Printf("MEASURED %s %.1f %s\n", what, value, unit)
}

// stack holds a pod, with its simulated world and its Cluster Autoscaler.
type stack struct {
	*pod
	t      *testing.T
	binary string
	world  *simworld.World
	ca     *player.Player
}

// newStack makes a stack whose pod does not run yet.
func newStack(t *testing.T, name string) *stack {
	t.Helper()
	dir := filepath.Join(os.TempDir(), "liqo-autoscaler-e2e", name)
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.MkdirAll(dir, 0o755))
	s := &stack{t: t, binary: filepath.Join(dir, "liqo-autoscaler")}
	_, file, _, _ := runtime.Caller(0)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", s.binary, "./cmd/liqo-autoscaler")
	build.Dir = filepath.Join(filepath.Dir(file), "..", "..")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	const offer = "lendable: {cpu: 800, memory: 1600Gi, pods: 44000}, price: 1, lingerSeconds: 0"
	s.world = simworld.New(t, dir, sim.Delays{Peer: time.Second, Join: 3 * time.Second, Leave: 300 * time.Millisecond,
		Unpeer: 300 * time.Millisecond, Register: 500 * time.Millisecond},
		simworld.Provider{Name: "milan", Offer: offer}, simworld.Provider{Name: "genoa", Offer: offer})
	groups := filepath.Join(dir, "groups.yaml")
	require.NoError(t, os.WriteFile(groups, []byte(groupsText), 0o600))
	s.pod = newPod(t, dir, s.binary, groups, "--backend=sim", "--world="+s.world.Path(), "--offers="+s.world.Offers())
	s.ca = player.New(t, "std", flagOf(s.specs["grpcserver"].Args, "--listen"))
	return s
}

// whole returns an error unless CA sees n running nodes and the world contains each node once.
func (s *stack) whole(n int) error {
	seen, err := s.ca.Look()
	if err != nil {
		return err
	}
	w, err := s.world.Snapshot()
	if err != nil {
		return err
	}
	c := w.Counts()
	if seen.Target != n || len(seen.Running) != n || c.Slices != n || c.Nodes != n || c.Ready != n || c.Stamped != n {
		return fmt.Errorf("%d wanted, CA sees target %d, %d running, there are %+v", n, seen.Target, len(seen.Running), c)
	}
	return nil
}

// grows scales the group to n nodes, and restarts processes that end during the scale-out.
func (s *stack) grows(n int) {
	s.t.Helper()
	s.ca.Wanted = n
	s.ca.Until(5*time.Minute, fmt.Sprint(n, " nodes run"), func() error {
		s.start(s.t)
		return errors.Join(s.ca.Loop(), s.whole(n))
	})
}

// nodes returns the providerIDs of the existing Nodes, by the Nodes' names.
func (s *stack) nodes() map[string]string {
	s.t.Helper()
	w, err := s.world.Snapshot()
	require.NoError(s.t, err)
	out := map[string]string{}
	for name, node := range w.Consumer.Nodes {
		out[name] = node.Spec.ProviderID
	}
	return out
}

// TestBundled runs the suite. Its parts run one after another on the same pod.
func TestBundled(t *testing.T) {
	s := newStack(t, "bundled")
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"starts", s.starts}, {"burst", s.burst}, {"Temporal is killed", s.temporalKilled},
		{"a second process", s.second}, {"the pod is stopped", s.stopped}, {"the pod is killed", s.podKilled},
		{"another schema", s.anotherSchema},
	} {
		if !t.Run(part.name, func(t *testing.T) { s.t, s.ca.T = t, t; part.run(t) }) {
			t.FailNow()
		}
		s.t, s.ca.T = t, t
	}
}

// starts checks a pod that begins with an empty volume and without any preparation.
func (s *stack) starts(t *testing.T) {
	began := time.Now()
	s.becomesReady(t)
	measured("ready, from an empty volume", time.Since(began).Seconds(), "s")
	s.ca.Wanted = 1
	s.ca.Until(time.Minute, "the first node is Ready", func() error { return errors.Join(s.ca.Loop(), s.whole(1)) })
	measured("first node Ready, from an empty volume", time.Since(began).Seconds(), "s")
	out, err := exec.CommandContext(t.Context(), s.binary, "status", "--temporal-address", s.address).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `std-\w+-1 +std +Ready `, string(out))
	s.memory("at rest")
}

// burst requests fifty nodes in one call.
func (s *stack) burst(*testing.T) {
	began := time.Now()
	s.grows(51)
	measured("50 nodes in one call, Ready (of it 4.5 simulated Liqo)", time.Since(began).Seconds(), "s")
	s.memory("after a burst of 50")
	s.disk("after a burst of 50")
}

// temporalKilled kills Temporal several times while CA grows the group. No booking that was confirmed to CA is lost.
func (s *stack) temporalKilled(t *testing.T) {
	acknowledged := 51
	for round := range 3 {
		s.ca.Wanted = acknowledged + 20
		s.ca.Until(time.Minute, "twenty more are booked", s.ca.Loop)
		acknowledged = s.ca.Wanted
		s.ca.Until(time.Minute, "nodes are being made", func() error {
			w, err := s.world.Snapshot()
			if err == nil && w.Counts().Slices <= acknowledged-20 {
				err = errors.New("no slice yet")
			}
			return err
		})
		booked, err := s.ca.Look()
		require.NoError(t, err)
		require.Less(t, len(booked.Running), acknowledged, "they are under way")
		s.processes["temporal"].Kill()
		s.intact(fmt.Sprint("killed ", round))
		began := time.Now()
		s.grows(acknowledged)
		measured(fmt.Sprintf("Temporal killed, %d nodes Ready", acknowledged), time.Since(began).Seconds(), "s")
		seen, err := s.ca.Look()
		require.NoError(t, err)
		for _, id := range booked.Listed {
			require.True(t, slices.Contains(seen.Listed, id), "%s was booked, and is lost", id)
		}
	}
}

// intact checks copies of both files, including their journals.
func (s *stack) intact(as string) {
	s.t.Helper()
	dir := filepath.Join(s.dir, "copy "+as)
	require.NoError(s.t, os.CopyFS(dir, os.DirFS(s.data)))
	files, err := filepath.Glob(filepath.Join(dir, "*.db"))
	require.NoError(s.t, err)
	require.Len(s.t, files, 2)
	for _, file := range files {
		db, err := sql.Open("sqlite", "file:"+file)
		require.NoError(s.t, err)
		var verdict string
		require.NoError(s.t, db.QueryRowContext(s.t.Context(), "PRAGMA integrity_check").Scan(&verdict))
		require.Equal(s.t, "ok", verdict, file)
		require.NoError(s.t, db.Close())
	}
}

// second starts a second Temporal on the files of the running Temporal. The second one must fail.
func (s *stack) second(t *testing.T) {
	spec := s.specs["temporal"]
	spec.Name = "second"
	second, err := proc.Start(spec)
	require.NoError(t, err)
	<-second.Done()
	log, err := os.ReadFile(second.Log)
	require.NoError(t, err)
	require.Contains(t, string(log), "another process has "+s.data+"/lock")
	require.NoError(t, s.whole(s.ca.Wanted))
}

// stopped ends all processes with SIGTERM, as the kubelet does, and starts them again. Each process ends within 30
// seconds.
func (s *stack) stopped(t *testing.T) {
	before := s.nodes()
	began := time.Now()
	for _, name := range containers {
		require.NoError(t, s.processes[name].Signal(syscall.SIGTERM))
	}
	for _, name := range containers {
		require.NoError(t, s.processes[name].Stop(30*time.Second), name)
		measured(name+" stopped, after SIGTERM to all", time.Since(began).Seconds(), "s")
	}
	began = time.Now()
	s.becomesReady(t)
	measured("ready, after a restart", time.Since(began).Seconds(), "s")
	s.ca.Until(time.Minute, "all nodes are there", func() error { return s.whole(s.ca.Wanted) })
	require.Equal(t, before, s.nodes())
}

// podKilled ends all processes by SIGKILL, during two hundred scale-outs.
func (s *stack) podKilled(t *testing.T) {
	s.ca.Wanted += 200
	s.ca.Until(time.Minute, "two hundred more are booked", s.ca.Loop)
	booked, err := s.ca.Look()
	require.NoError(t, err)
	require.Greater(t, s.ca.Wanted-len(booked.Running), 180, "they are under way")
	s.kill()
	s.intact("pod killed")
	began := time.Now()
	s.becomesReady(t)
	s.grows(s.ca.Wanted)
	measured(fmt.Sprintf("pod killed with 200 scale-outs, %d nodes Ready", s.ca.Wanted), time.Since(began).Seconds(), "s")
	seen, err := s.ca.Look()
	require.NoError(t, err)
	for _, id := range booked.Listed {
		require.True(t, seen.Running[id], "%s was booked, and is lost", id)
	}
	s.memory(fmt.Sprintf("with %d nodes", s.ca.Wanted))
	s.disk(fmt.Sprintf("with %d nodes", s.ca.Wanted))
}

// anotherSchema begins with files of another schema on the volume. This version treats these files like a lost
// volume.
func (s *stack) anotherSchema(t *testing.T) {
	before := s.nodes()
	s.kill()
	old := map[string]string{}
	files, err := filepath.Glob(filepath.Join(s.data, "*1.31*"))
	require.NoError(t, err)
	for _, file := range files {
		to := strings.Replace(file, "1.31", "1.29", 1)
		require.NoError(t, os.Rename(file, to))
		content, err := os.ReadFile(to)
		require.NoError(t, err)
		old[to] = string(content)
	}
	require.NotEmpty(t, old)
	began := time.Now()
	s.becomesReady(t)
	s.ca.Until(5*time.Minute, "all nodes are known", func() error { return s.whole(s.ca.Wanted) })
	measured(fmt.Sprintf("volume lost, %d nodes known", s.ca.Wanted), time.Since(began).Seconds(), "s")
	require.Equal(t, before, s.nodes(), "no node was made or removed")
	for file, content := range old {
		now, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, string(now) == content, "%s was opened", file)
	}
	s.grows(s.ca.Wanted + 2)
}

var resident = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// memory measures the resident memory of each process.
func (s *stack) memory(when string) {
	s.t.Helper()
	for _, name := range containers {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.processes[name].Pid()))
		require.NoError(s.t, err)
		var kib float64
		_, err = fmt.Sscan(string(resident.FindSubmatch(status)[1]), &kib)
		require.NoError(s.t, err)
		measured("memory "+when+" of "+name, kib/1024, "MiB")
	}
}

// disk measures the files on the volume.
func (s *stack) disk(when string) {
	s.t.Helper()
	files, err := os.ReadDir(s.data)
	require.NoError(s.t, err)
	var bytes int64
	for _, file := range files {
		info, err := file.Info()
		require.NoError(s.t, err)
		bytes += info.Size()
	}
	measured("volume "+when, float64(bytes)/(1<<20), "MiB")
}
