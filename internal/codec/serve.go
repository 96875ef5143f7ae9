package codec

import (
	"net"
	"net/http"
	"slices"

	"go.temporal.io/sdk/converter"
)

// maxBody bounds a request: one page of a history.
const maxBody = 16 << 20

// Handler serves a codec to the Temporal UI and the temporal CLI: POST /encode and /decode, as their --codec-endpoint
// expects. It decrypts without authentication. So it answers only requests to a loopback address, and of web pages
// only the given origins: any other page in the same browser could otherwise read Temporal's payloads.
func Handler(codec converter.PayloadCodec, origins []string) http.Handler {
	serve := converter.NewPayloadCodecHTTPHandler(codec)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !Loopback(r.Host) {
			http.Error(w, "this codec answers requests to 127.0.0.1 and localhost alone", http.StatusForbidden)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			if !slices.Contains(origins, origin) {
				http.Error(w, "give this origin with --ui-origin to let its pages use this codec", http.StatusForbidden)
				return
			}
			w.Header().Set("Access-Control-Allow-Origin", origin)
			w.Header().Set("Vary", "Origin")
			w.Header().Set("Access-Control-Allow-Methods", "POST")
			w.Header().Set("Access-Control-Allow-Headers", "Content-Type, X-Namespace, Authorization")
		}
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		serve.ServeHTTP(w, r)
	})
}

// Loopback reports whether a host, with or without a port, is this machine's loopback address.
func Loopback(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = hostPort
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
