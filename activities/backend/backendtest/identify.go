package backendtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

const secret = "c0ntract-s3cret-t0ken"

func (s *suite) testIdentify(t *testing.T) {
	for _, p := range s.Providers {
		id, err := s.Backend.Identify(s.prompt(t), p.Credentials)
		require.NoError(t, err)
		require.Equal(t, p.ID, id)
	}
}

func (s *suite) testIdentifyBroken(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) fleet.Credentials {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return fleet.Credentials{KubeconfigFile: path}
	}
	for name, credentials := range map[string]fleet.Credentials{
		"not yaml":     file("not-yaml", "users: [\n\t"+secret),
		"another text": file("text", secret),
		"another type": file("type", "users: "+secret+"\ncurrent-context: 3\nclusters: {"+secret+": 1}\n"),
		"empty file":   file("empty", ""),
		"no such file": {KubeconfigFile: filepath.Join(dir, "missing")},
		"nothing":      {},
	} {
		t.Run(name, func(t *testing.T) {
			id, err := s.Backend.Identify(s.prompt(t), credentials)
			require.ErrorIs(t, err, backend.ErrInvalid)
			require.NotErrorIs(t, err, backend.ErrUnreachable)
			require.Empty(t, id)
			require.NotContains(t, err.Error(), secret, "a secret is in the error")
		})
	}
}

func (s *suite) testIdentifyUnreachable(t *testing.T) {
	if s.World.Unreachable == nil {
		t.Skip("this harness has no World.Unreachable")
	}
	id, err := s.Backend.Identify(s.ctx(t), s.World.Unreachable(t, secret))
	require.ErrorIs(t, err, backend.ErrUnreachable)
	require.NotErrorIs(t, err, backend.ErrInvalid)
	require.Empty(t, id)
	require.NotContains(t, err.Error(), secret, "a secret is in the error")
}
