package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
)

// A bound with nothing behind it, as a template leaves it, is no leave to do anything.
func TestParseWritersRefusesEmptyBounds(t *testing.T) {
	for _, key := range []string{"secretNamespaces", "providers"} {
		for _, empty := range []string{"", " null", " ~", " []"} {
			_, err := ParseWriters(fmt.Appendf(nil, "writers:\n- name: a\n  tokenSHA256: %s\n  %s:%s\n", hash("x"), key, empty))
			require.ErrorContains(t, err, "writers[0]."+key+": is empty", "%q", empty)
		}
	}
}

// A writer of certain clusters says which one an offer is of, or is taken at its only one; those who use the offer hold that
// against the cluster, so that no other one's offer is left out for it.
func TestWriterOfCertainClusters(t *testing.T) {
	for bound, want := range map[string]map[string]int{
		"milan":       {"": http.StatusCreated, "milan": http.StatusCreated, "rome": http.StatusUnprocessableEntity},
		"milan, rome": {"": http.StatusUnprocessableEntity, "milan": http.StatusCreated, "turin": http.StatusUnprocessableEntity},
	} {
		for claim, status := range want {
			writers, err := ParseWriters(fmt.Appendf(nil, "writers: [{name: a, tokenSHA256: %s, providers: [%s]}]", hash(tokenA), bound))
			require.NoError(t, err)
			body := goodOffer
			if claim != "" {
				body = strings.Replace(goodOffer, `{"name"`, fmt.Sprintf(`{"provider":%q,"name"`, claim), 1)
			}
			got, said := putAs(t, writers, body)
			require.Equal(t, status, got, "bound to %s, says %q: %s", bound, claim, said)
			if status == http.StatusCreated {
				require.Contains(t, said, `"provider":"milan"`)
			}
		}
	}
}

func putAs(t *testing.T, writers Writers, body string) (status int, said string) {
	t.Helper()
	s, err := New(Options{Store: store.NewMemory(), Writers: writers, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	request := httptest.NewRequest(http.MethodPut, "/v1/offers/milan", strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+tokenA)
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, request)
	return answer.Code, answer.Body.String()
}
