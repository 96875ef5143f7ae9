package codec

import (
	"net"
	"net/http"
	"slices"

	"go.temporal.io/sdk/converter"
)

// maxBody bounds the body of a request, in bytes. The largest request is one page of a history.
const maxBody = 16 << 20

// Handler returns an HTTP handler through which the Temporal UI and the temporal CLI use a codec. It serves POST
// /encode and POST /decode, which these clients call when their setting --codec-endpoint is set. It decrypts without
// authentication. Therefore it answers only requests to a loopback address. It answers requests of a web page only if
// the page has one of the given origins. Otherwise any page in the user's browser could read Temporal's payloads.
func Handler(codec converter.PayloadCodec, origins []string) http.Handler {
	serve := converter.NewPayloadCodecHTTPHandler(codec)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !Loopback(r.Host) {
			http.Error(w, "this codec answers only requests to 127.0.0.1 and localhost", http.StatusForbidden)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			if !slices.Contains(origins, origin) {
				http.Error(w, "to let pages of this origin use the codec, add the origin with --ui-origin", http.StatusForbidden)
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

// Loopback reports whether a host is localhost or a loopback IP address. hostPort is the host, with or without a
// port.
func Loopback(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = hostPort
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
