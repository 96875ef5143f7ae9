package bundled

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
)

// TestFullVolume fills the volume while CA wants nodes. The pod is not ready, although Temporal reports that it is
// serving. When the volume has room again, scaling continues without a restart.
func TestFullVolume(t *testing.T) {
	s := newStack(t, "bundled-full")
	if err := syscall.Mount("tmpfs", s.data, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("mounts a file system: %v", err)
	}
	t.Cleanup(func() { s.kill(); require.NoError(t, syscall.Unmount(s.data, 0)) })
	s.becomesReady(t)
	s.grows(2)

	filler := filepath.Join(s.data, "filler")
	fill(t, filler)
	s.ca.Wanted = 80 // SQLite first uses the free pages of its files
	began := time.Now()
	s.ca.Until(4*time.Minute, "the pod is not ready", func() error {
		looped, err := s.ca.Loop(), s.readiness()
		if err == nil {
			return fmt.Errorf("it is ready; CA's last loop: %w", looped)
		}
		if !strings.Contains(err.Error(), "Temporal's database: write: ") {
			return fmt.Errorf("it says: %w", err)
		}
		t.Logf("CA's last loop: %v; the readiness: %v", looped, err)
		return nil
	})
	measured("volume full and CA asks for 80 nodes, not ready", time.Since(began).Seconds(), "s")
	require.Equal(t, healthgrpc.HealthCheckResponse_SERVING, s.health(), "Temporal's own health stays good")
	s.ca.Wanted++
	require.Error(t, s.ca.Loop(), "nothing is booked")

	pids := map[string]int{}
	for name, p := range s.processes {
		pids[name] = p.Pid()
	}
	require.NoError(t, os.Remove(filler))
	began = time.Now()
	s.ca.Until(2*time.Minute, "the pod is ready", s.readiness)
	measured("room again, ready", time.Since(began).Seconds(), "s")
	s.grows(s.ca.Wanted)
	measured("room again, all nodes Ready", time.Since(began).Seconds(), "s")
	for name, p := range s.processes {
		require.Equal(t, pids[name], p.Pid(), "%s was not restarted", name)
	}
}

// fill writes a file until the volume is full.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	require.NoError(t, err)
	defer file.Close()
	for size := 1 << 20; size > 0; {
		if _, err := file.Write(make([]byte, size)); err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
			size /= 16
		}
	}
}

// health returns the health that Temporal's frontend reports.
func (s *stack) health() healthgrpc.HealthCheckResponse_ServingStatus {
	s.t.Helper()
	conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(s.t, err)
	defer conn.Close()
	got, err := healthgrpc.NewHealthClient(conn).Check(s.t.Context(),
		&healthgrpc.HealthCheckRequest{Service: "temporal.api.workflowservice.v1.WorkflowService"})
	require.NoError(s.t, err)
	return got.GetStatus()
}
