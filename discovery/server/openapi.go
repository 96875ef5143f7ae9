package server

import (
	_ "embed" // openapi.yaml
	"net/http"
)

//go:embed openapi.yaml
var openapiDocument []byte

func (s *Server) openapi(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	if _, err := w.Write(openapiDocument); err != nil {
		s.options.Log.Debug("the client did not read the answer", "method", r.Method, "path", r.URL.Path, "error", err)
	}
}
