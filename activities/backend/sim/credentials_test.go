package sim

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/backendtest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func secret(name string) fleet.Credentials {
	return fleet.Credentials{SecretRef: &fleet.SecretRef{Namespace: "lend", Name: name, Key: "kubeconfig"}}
}

// The whole contract passes with credentials in Secrets, as it does with credentials in files.
func TestContractWithSecrets(t *testing.T) {
	w := open(t, filepath.Join(t.TempDir(), "world.json"), Delays{})
	h := harness(t, w, "contract", "one", "two")
	for i, p := range h.Providers {
		h.Providers[i].Credentials = secret(p.ID)
	}
	backendtest.Run(t, h)
	require.Zero(t, counts(t, w))
}

// Credentials are a reference to a Secret. The Secret's name is the provider's id. Peers returns this reference,
// because a recovery needs it.
func TestNameOfTheSecretIsTheProvidersID(t *testing.T) {
	w := open(t, filepath.Join(t.TempDir(), "world.json"), Delays{})
	b, one := New(w, testOptions), provider(t, w, "one")
	one.Credentials = secret("one")
	id, err := b.Identify(t.Context(), one.Credentials)
	require.NoError(t, err)
	require.Equal(t, "one", id)
	require.NoError(t, b.Establish(bounded(t), one, nil))
	peers, err := b.Peers(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []fleet.Provider{one}, peers)
}

func TestIdentifyReportsBadCredentials(t *testing.T) {
	w := open(t, filepath.Join(t.TempDir(), "world.json"), Delays{})
	one, file := provider(t, w, "one"), credentials(t, w, "one")
	require.NoError(t, w.SetKnobs(t.Context(), "one", Knobs{Unreachable: true}))
	both := one.Credentials
	both.SecretRef = secret("one").SecretRef
	for name, c := range map[string]struct {
		credentials fleet.Credentials
		want        error
		says        string
	}{
		"neither":            {fleet.Credentials{}, backend.ErrInvalid, "exactly one of"},
		"both":               {both, backend.ErrInvalid, "exactly one of"},
		"no name":            {secret(""), backend.ErrInvalid, "Secret lend/"},
		"no such provider":   {secret("nobody"), backend.ErrUnreachable, "Secret lend/nobody"},
		"unreachable":        {secret("one"), backend.ErrUnreachable, "Secret lend/one"},
		"unreachable (file)": {file, backend.ErrUnreachable, file.KubeconfigFile},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(w, testOptions).Identify(t.Context(), c.credentials)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.says)
		})
	}
}
