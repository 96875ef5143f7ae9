package attack

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/memlimit"
)

// sources returns the folder of the product.
func sources(t *testing.T) string {
	t.Helper()
	_, file, _, ok := runtime.Caller(0)
	require.True(t, ok)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// stack holds the files that the programs share.
type stack struct {
	t       *testing.T
	dir     string
	program string
	by      *testkit.Certificate // has signed the certificates of servers and of honest clients
	limits  map[string]int64     // bytes, by the name of the chart's section
}

// newStack builds the program, and reads the chart's limits.
func newStack(t *testing.T) *stack {
	t.Helper()
	s := &stack{t: t, dir: t.TempDir(), by: testkit.NewAuthority(t), limits: map[string]int64{}}
	s.program = s.in("liqo-autoscaler")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", s.program, "./cmd/liqo-autoscaler")
	build.Dir = sources(t)
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	text, err := os.ReadFile(filepath.Join(sources(t), "deploy", "helm", "liqo-autoscaler", "values.yaml"))
	require.NoError(t, err)
	type section struct {
		Resources struct {
			Limits map[string]resource.Quantity `json:"limits"`
		} `json:"resources"`
	}
	var values struct {
		Server    section `json:"grpcserver"`
		Worker    section `json:"worker"`
		Discovery section `json:"discovery"`
	}
	require.NoError(t, yaml.Unmarshal(text, &values))
	for name, of := range map[string]section{"grpcserver": values.Server, "worker": values.Worker,
		"discovery": values.Discovery} {
		memory := of.Resources.Limits["memory"]
		require.Positive(t, memory.Value(), name)
		s.limits[name] = memory.Value()
	}
	require.NoError(t, os.WriteFile(s.in("ca.crt"), s.by.PEM(), 0o600))
	s.by.Issue(t).Write(t, s.in("tls.crt"), s.in("tls.key"))
	return s
}

func (s *stack) in(name string) string { return filepath.Join(s.dir, name) }

// member is a program within its memory limit.
type member struct {
	*proc.Process
	t               *testing.T
	name            string
	group           *memlimit.Group
	limit           int64
	metrics, health string // URLs
}

// start starts a program within the chart's limit, and waits until it is ready. Its first argument is its command.
func (s *stack) start(args ...string) *member {
	s.t.Helper()
	name, ports := args[0], testkit.FreePorts(s.t, 2)
	m := &member{t: s.t, name: name, limit: s.limits[name], group: memlimit.New(s.t, s.limits[name]),
		metrics: "http://" + ports[0] + "/metrics", health: "http://" + ports[1] + "/readyz"}
	path, all := m.group.Command(s.program, append(args, "--metrics-listen", ports[0], "--health-listen", ports[1])...)
	p, err := proc.Start(proc.Spec{Name: name, Path: path, LogDir: s.dir, Args: all})
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		p.Kill()
		if s.t.Failed() {
			s.t.Logf("%s said at last:\n%s", name, proc.Tail(p.Log, 30))
		}
	})
	m.Process = p
	require.NoError(s.t, p.Until(s.t.Context(), answers(m.health)))
	m.heedsLimit()
	return m
}

// heedsLimit checks that the program has set Go's memory limit to nine tenths of its own limit, so that the garbage
// collector works harder before the kernel kills the program.
func (m *member) heedsLimit() {
	m.t.Helper()
	answer, err := http.Get(m.metrics)
	require.NoError(m.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(m.t, err)
	_, after, ok := strings.Cut(string(text), "\ngo_gc_gomemlimit_bytes")
	require.True(m.t, ok)
	line, _, _ := strings.Cut(after, "\n")
	fields := strings.Fields(line)
	bytes, err := strconv.ParseFloat(fields[len(fields)-1], 64)
	require.NoError(m.t, err)
	require.InDelta(m.t, 0.9*float64(m.limit), bytes, 1<<20)
}

// lives fails the test if the kernel has killed the program, or the program has ended.
func (m *member) lives(attack string) {
	m.t.Helper()
	peak := m.group.Peak(m.t)
	fmt.Printf("BENCH attack-%s-%s-peak %.0f MiB %.2f of-the-limit\n", m.name, attack, float64(peak)/(1<<20),
		float64(peak)/float64(m.limit))
	require.Zero(m.t, m.group.Killed(m.t), "the kernel has killed the %s: %s", m.name, attack)
	select {
	case <-m.Done():
		require.Fail(m.t, "the program has ended", "%s: %s", m.name, attack)
	default:
	}
	log, err := os.Stat(m.Log)
	require.NoError(m.t, err)
	require.Less(m.t, log.Size(), int64(4<<20), "%s fills its log: %s", m.name, attack)
}

func hash(token string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(token))) }
