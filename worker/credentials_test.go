package worker_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
)

// locked is a backend whose RemovePeering needs the provider's credentials. Like Liqo's backend, it waits for them
// without end.
type locked struct{ backend.Backend }

func (l locked) RemovePeering(ctx context.Context, p fleet.Provider, progress backend.Progress) error {
	if _, err := os.Stat(p.Credentials.KubeconfigFile); err != nil {
		<-ctx.Done()
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	return l.Backend.RemovePeering(ctx, p, progress)
}

// A provider has a peering, the file of its credentials moves, and its offer names the new file. The peering is still
// removed, and the provider can be used again.
func TestPeeringIsRemovedWithCurrentCredentials(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work(func(o *worker.Options) { o.Backend = locked{o.Backend} })
	s.grow(1)
	name := s.allIn(fleet.Ready, 1).Instances[0].Name
	old, moved := s.providers[0]+".kubeconfig", "moved.kubeconfig"
	offers := filepath.Join(s.dir, "offers.yaml")
	text, err := os.ReadFile(offers)
	require.NoError(t, err)
	require.NoError(t, os.Rename(filepath.Join(s.dir, old), filepath.Join(s.dir, moved)))
	require.NoError(t, os.WriteFile(offers, bytes.ReplaceAll(text, []byte(old), []byte(moved)), 0o600))
	s.release(name)
	s.allIn("", 0)
	s.grow(1)
	i := s.until("there is a verdict", func(snap fleet.Snapshot) bool {
		return len(snap.Instances) == 1 && (snap.Instances[0].Phase == fleet.Ready || snap.Instances[0].Phase == fleet.Failed)
	}).Instances[0]
	require.Equal(t, fleet.Ready, i.Phase, "%+v", i.Failure)
	s.release(i.Name)
	s.empty()
}
