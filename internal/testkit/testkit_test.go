package testkit_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

func TestCertificates(t *testing.T) {
	authority := testkit.NewAuthority(t)
	dir := t.TempDir()
	crt, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	authority.Issue(t).Write(t, crt, key)
	served, err := tls.LoadX509KeyPair(crt, key)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{served}, ClientCAs: authority.Pool(),
		ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	get := func(trusted, own *testkit.Certificate) error {
		config := &tls.Config{RootCAs: trusted.Pool(), Certificates: []tls.Certificate{own.TLS()}}
		transport := &http.Transport{TLSClientConfig: config}
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Get(server.URL)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	require.NoError(t, get(authority, authority.Issue(t)))
	stranger := testkit.NewAuthority(t)
	require.Error(t, get(stranger, authority.Issue(t)))
	require.Error(t, get(authority, stranger.Issue(t)))
	expired := authority.Issue(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	require.Error(t, get(authority, expired))
}

func TestFreePortsDiffer(t *testing.T) {
	ports := testkit.FreePorts(t, 5)
	slices.Sort(ports)
	require.Len(t, slices.Compact(ports), 5)
}

func TestPollRepeatsUntilSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, errNotYet := 0, errors.New("not yet")
		check := func(context.Context) error {
			if calls++; calls < 3 {
				return errNotYet
			}
			return nil
		}
		require.NoError(t, testkit.Poll(t.Context(), time.Minute, time.Second, check))
		require.Equal(t, 3, calls)

		began := time.Now()
		err := testkit.Poll(t.Context(), time.Minute, 40*time.Second, func(ctx context.Context) error {
			if time.Since(began) > 0 {
				<-ctx.Done()
				return ctx.Err()
			}
			return errNotYet
		})
		require.ErrorIs(t, err, errNotYet, "the end of the time does not hide what was seen")
		require.Equal(t, time.Minute, time.Since(began))
	})
}

// The cases of a seed are the same in each run. A case that is run alone is the same as in a run of all cases.
func TestCasesOfASeedAreStable(t *testing.T) {
	draw := func(seed, cases string) (drawn []uint64) {
		t.Setenv(testkit.EnvSeed, seed)
		t.Setenv(testkit.EnvCases, cases)
		for r := range testkit.Cases(t) {
			drawn = append(drawn, r.Uint64())
		}
		return drawn
	}
	all := draw("7", "20")
	require.Len(t, all, 20)
	require.Equal(t, all, draw("7", "20"))
	require.Equal(t, all[13:14], draw("7/13", "20"))
	require.NotEqual(t, all, draw("8", "20"))
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(all))), 20)
}
