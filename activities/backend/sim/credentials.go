package sim

import (
	"context"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// kubeconfig is the content of a credentials file.
type kubeconfig struct {
	SimulatedProvider string `json:"simulatedProvider"`
}

// Identify returns the provider the credentials file names. ErrInvalid when the file is missing or says something else,
// ErrUnreachable when the world has no such provider or it is unreachable.
func (b *Backend) Identify(_ context.Context, credentials fleet.Credentials) (string, error) {
	id, err := read(credentials)
	if err != nil {
		return "", err
	}
	s, err := b.world.Snapshot()
	if err != nil {
		return "", err
	}
	if p := s.Providers[id]; p == nil || p.Knobs.Unreachable {
		return "", fmt.Errorf("identify provider of %s: no answer from simulated provider: %w",
			credentials.KubeconfigFile, backend.ErrUnreachable)
	}
	return id, nil
}

// read never quotes the file: who knows what is in it.
func read(credentials fleet.Credentials) (id string, err error) {
	path := credentials.KubeconfigFile
	if path == "" || credentials.SecretRef != nil {
		return "", fmt.Errorf("read credentials: the simulated backend needs kubeconfigFile, and only that: %w", backend.ErrInvalid)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read credentials: %w: %w", err, backend.ErrInvalid)
	}
	var k kubeconfig
	if yaml.UnmarshalStrict(content, &k) != nil || k.SimulatedProvider == "" {
		return "", fmt.Errorf("read credentials %s: not a line \"simulatedProvider: <id>\": %w", path, backend.ErrInvalid)
	}
	return k.SimulatedProvider, nil
}
