package sim

import (
	"context"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// kubeconfig is the content of a credentials file.
type kubeconfig struct {
	SimulatedProvider string `json:"simulatedProvider"`
}

// Identify returns the provider that the credentials name. The provider's id is in the file, or is the name of the
// Secret. It returns ErrInvalid when the file is missing or has other content, and ErrUnreachable when the provider
// is unreachable or missing in the world.
func (b *Backend) Identify(_ context.Context, credentials fleet.Credentials) (string, error) {
	id, err := read(credentials)
	if err != nil {
		return "", err
	}
	var knobs Knobs
	if _, err := b.world.view(func(s *State) { knobs = s.providerOr(id).Knobs }); err != nil {
		return "", err
	}
	if knobs.Unauthorized {
		return "", fmt.Errorf("identify provider of %s: it does not accept these credentials: %w", where(credentials),
			backend.ErrInvalid)
	}
	if knobs.Unreachable {
		return "", fmt.Errorf("identify provider of %s: no answer from simulated provider: %w", where(credentials),
			backend.ErrUnreachable)
	}
	return id, nil
}

// read returns the provider id in the credentials. Its errors never quote the file, whose content is unknown.
func read(credentials fleet.Credentials) (id string, err error) {
	path, ref := credentials.KubeconfigFile, credentials.SecretRef
	if (path == "") == (ref == nil) {
		return "", fmt.Errorf("read credentials: give exactly one of kubeconfigFile and secretRef: %w", backend.ErrInvalid)
	}
	if ref != nil {
		if ref.Name == "" {
			return "", fmt.Errorf("read credentials: %s has no name; it is the simulated provider's id: %w", where(credentials),
				backend.ErrInvalid)
		}
		return ref.Name, nil
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

// where returns the location of the credentials for error messages.
func where(credentials fleet.Credentials) string {
	if ref := credentials.SecretRef; ref != nil {
		return fmt.Sprintf("Secret %s/%s", ref.Namespace, ref.Name)
	}
	return credentials.KubeconfigFile
}
