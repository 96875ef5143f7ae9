package account

import "k8s.io/client-go/rest"

// Unverified returns the reason why a client with this configuration would not verify the server's identity, with the
// remedy; "" if the client verifies it. Without verification an attacker in the network would receive the token, and
// could impersonate the provider.
func Unverified(config *rest.Config) string {
	if config.Insecure {
		return "has insecure-skip-tls-verify: give it the certificate-authority-data of that API server instead"
	}
	if server, _, err := rest.DefaultServerUrlFor(config); err == nil && server.Scheme != "https" {
		return "has a server that is not https://: give the https:// address of its API server"
	}
	return ""
}
