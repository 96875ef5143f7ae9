package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
)

// A template may leave a bound of a writer empty. An empty bound must not permit everything, so it is refused.
func TestParseWritersRefusesEmptyBounds(t *testing.T) {
	for _, key := range []string{"secretNamespaces", "providers"} {
		for _, empty := range []string{"", " null", " ~", " []"} {
			_, err := ParseWriters(fmt.Appendf(nil, "writers:\n- name: a\n  tokenSHA256: %s\n  %s:%s\n", hash("x"), key, empty))
			require.ErrorContains(t, err, "writers[0]."+key+": is empty", "%q", empty)
		}
	}
}

// A writer may be bound to clusters. A writer that is bound to several clusters names the cluster in its offer. For a
// writer that is bound to one cluster, the server fills in this cluster. Workers check the named cluster, so that the
// offer of one writer never replaces the offer of another writer as a duplicate.
func TestWriterOffersOnlyItsClusters(t *testing.T) {
	for bound, want := range map[string]map[string]int{
		"milan": {"": http.StatusCreated, "milan": http.StatusCreated, "rome": http.StatusUnprocessableEntity},
		"milan, rome": {"": http.StatusUnprocessableEntity, "milan": http.StatusCreated,
			"turin": http.StatusUnprocessableEntity},
	} {
		for claim, status := range want {
			writers, err := ParseWriters(fmt.Appendf(nil, "writers: [{name: a, tokenSHA256: %s, providers: [%s]}]", hash(tokenA),
				bound))
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
	s, err := New(Options{Store: storetest.New(t), Writers: writers, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	request := httptest.NewRequest(http.MethodPut, "/v1/offers/milan", strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+tokenA)
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, request)
	return answer.Code, answer.Body.String()
}
