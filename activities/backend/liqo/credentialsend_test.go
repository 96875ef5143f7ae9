package liqo

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// The backend knows the expiry of a token as soon as a request uses the token, even if the provider no longer accepts
// the token.
func TestExpiryOfATokenIsKnown(t *testing.T) {
	end := time.Now().Add(-time.Hour).Truncate(time.Second)
	claims := fmt.Sprintf(`{"sub": "system:serviceaccount:a:b", "exp": %d}`, end.Unix())
	token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".e30"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write := func(token string) {
		require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(kubeconfig, "s3cret", token)), 0o600))
	}
	b, err := New(Config{Consumer: &rest.Config{Host: "https://127.0.0.1:1"}})
	require.NoError(t, err)
	require.Empty(t, b.CredentialsLife())
	milan := fleet.Provider{ID: "milan", Credentials: fleet.Credentials{KubeconfigFile: path}}
	write(token)
	require.Error(t, b.peering(milan).locateRemote(t.Context()))
	require.Equal(t, map[string]account.Life{"milan": {End: end}}, b.CredentialsLife())

	require.Empty(t, b.ends.all(time.Now().Add(endKept+time.Minute)), "a provider that is not used any more is forgotten")

	write("forever")
	require.Error(t, b.peering(milan).locateRemote(t.Context()))
	require.Empty(t, b.CredentialsLife())
}
