package dev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// devFile returns the file that a flag names. Without the flag it returns the file with the default name in the
// directory; if this file does not exist, devFile first writes the sample to it.
func devFile(given, dir, name string, sample []byte) (string, error) {
	if given != "" {
		return given, nil
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(path, sample, 0o600); err != nil {
			return "", fmt.Errorf("write sample: %w", err)
		}
	}
	return path, nil
}

// simulated is a source of offers whose providers are simulated. The provider of an offer has the offer's name and
// ignores the offer's credentials. When simulated lists an offer for the first time, it adds the offer's provider to
// the simulated world.
type simulated struct {
	discovery.Source
	world *sim.World

	mu    sync.Mutex
	known map[string]bool
}

// List implements discovery.Source.
func (s *simulated) List(ctx context.Context) ([]fleet.Offer, []discovery.Problem, error) {
	offers, problems, err := s.Source.List(ctx)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range offers {
		name := offers[i].Name
		ref := fleet.SecretRef{Namespace: "simulated", Name: name, Key: discovery.DefaultKey}
		offers[i].Credentials = fleet.Credentials{SecretRef: &ref}
		if s.known[name] {
			continue
		}
		if err := s.world.AddProvider(ctx, name, nil); err != nil {
			return nil, nil, fmt.Errorf("simulate provider %s: %w", name, err)
		}
		s.known[name] = true
	}
	return offers, problems, nil
}
