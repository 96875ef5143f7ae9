// Package postgres starts PostgreSQL servers for tests. Each server has its data in a temporary folder, and a test may
// kill it and start it again.
//
// The binaries come from PATH or from Debian's folder. initdb and postgres refuse to run as root. A test that runs as
// root therefore starts these programs as an unprivileged user.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// User is the name of each server's superuser. The superuser needs no password.
const User = "test"

// errAbsent means that PostgreSQL is not installed.
var errAbsent = errors.New("these tests need PostgreSQL: run apt-get install postgresql")

// debian is the folder into which Debian installs the versions of PostgreSQL.
const debian = "/usr/lib/postgresql"

// Bin returns the folder of PostgreSQL's binaries, or an error if PostgreSQL is not installed.
func Bin() (string, error) { return find(debian) }

func find(debian string) (string, error) {
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil { // on Debian, PATH contains links into its folder
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), "initdb")); err == nil {
				return filepath.Dir(path), nil
			}
		}
	}
	found, _ := filepath.Glob(filepath.Join(debian, "*", "bin", "initdb"))
	if len(found) == 0 {
		return "", errAbsent
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(newest), nil
}

// version returns the major version in the path <debian>/<version>/bin/initdb.
func version(initdb string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb))))
	return n
}

// Server is a PostgreSQL server.
type Server struct {
	Address string // host:port on loopback
	Dir     string // the folder of its data and its log file

	bin   string
	as    *syscall.Credential // nil means the current user
	cmd   *exec.Cmd
	ended chan struct{}
}

// New starts a server. When the test ends, it kills the server and removes the data.
func New(t testing.TB) *Server {
	t.Helper()
	bin, err := Bin()
	require.NoError(t, err)
	as, err := unprivileged()
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "liqo-autoscaler-postgres") // other users cannot enter t.TempDir()
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if as != nil {
		require.NoError(t, os.Chown(dir, int(as.Uid), int(as.Gid)))
	}
	s := &Server{Address: testkit.FreePorts(t, 1)[0], Dir: dir, bin: bin, as: as}
	s.Run(t, "initdb", "--pgdata", s.data(), "--username", User, "--auth", "trust", "--encoding", "UTF8", "--locale", "C",
		"--no-sync")
	t.Cleanup(s.Kill)
	s.Start(t)
	return s
}

func (s *Server) data() string { return filepath.Join(s.Dir, "data") }

// Log returns the path of the server's log.
func (s *Server) Log() string { return filepath.Join(s.Dir, "log") }

// unprivileged returns the user that runs PostgreSQL if the test runs as root, and nil otherwise.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		gid, problem := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err, problem); err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}

func (s *Server) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, name), args...)
	cmd.Dir = s.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Run runs one of PostgreSQL's programs, waits until it ends, and returns its standard output. If the program fails,
// Run fails the test.
func (s *Server) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	cmd := s.command(context.WithoutCancel(t.Context()), name, args...)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	require.NoError(t, err, "%s: %s", name, &problems)
	return string(out)
}

// Client returns the arguments with which PostgreSQL's programs connect to the server.
func (s *Server) Client() []string {
	host, port, _ := net.SplitHostPort(s.Address)
	return []string{"--host", host, "--port", port, "--username", User}
}

// DSN returns the connection URL of a database.
func (s *Server) DSN(database string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", User, s.Address, database)
}

// CreateDatabase creates an empty database.
func (s *Server) CreateDatabase(t testing.TB, name string) {
	t.Helper()
	s.Run(t, "createdb", append(s.Client(), name)...)
}

// Query returns the rows that a query returns. Each row is one line, and | separates its columns.
func (s *Server) Query(t testing.TB, database, sql string) string {
	t.Helper()
	return strings.TrimSpace(s.Run(t, "psql", append(s.Client(), "--no-psqlrc", "--tuples-only", "--no-align", "--dbname",
		database, "--command", sql)...))
}

// Start starts the server and blocks until the server accepts queries. It can also start a server after Kill; the
// server then first recovers its database.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	testkit.Until(t, time.Minute, "PostgreSQL starts", func() error {
		if s.cmd == nil || s.hasEnded() { // a start fails while killed processes still use the shared memory
			if err := s.start(); err != nil {
				return err
			}
		}
		return s.command(t.Context(), "pg_isready", s.Client()...).Run()
	})
}

func (s *Server) start() error {
	log, err := os.OpenFile(s.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return err
	}
	cmd := s.command(context.Background(), "postgres", "-D", s.data(), "-h", host, "-p", port, "-k", s.Dir)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	s.cmd, s.ended = cmd, ended
	return nil
}

func (s *Server) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// Kill kills all processes of the server with SIGKILL, as in a power failure.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	pid := s.cmd.Process.Pid
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	_ = s.cmd.Process.Kill()
	for _, child := range strings.Fields(string(children)) {
		if n, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
	<-s.ended
	s.cmd = nil
}
