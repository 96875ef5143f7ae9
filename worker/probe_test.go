package worker

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProbeAcceptsAnyAnswer(t *testing.T) {
	require.Nil(t, probe(""))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/nobody", http.StatusFound)
	}))
	require.NoError(t, probe(s.URL)(t.Context()), "any answer will do")
	s.Close()
	require.Error(t, probe(s.URL)(t.Context()))
	require.Error(t, probe("://")(t.Context()))
}
