package account

import "k8s.io/client-go/rest"

// Unverified returns "" if a client with this configuration verifies the identity of the server. Otherwise it returns
// the reason and the remedy. If a client does not verify the identity, an attacker in the network can impersonate the
// provider and receive the token.
func Unverified(config *rest.Config) string {
	if config.Insecure {
		return "has insecure-skip-tls-verify: give it the certificate-authority-data of that API server instead"
	}
	if server, _, err := rest.DefaultServerUrlFor(config); err == nil && server.Scheme != "https" {
		return "has a server that is not https://: give the https:// address of its API server"
	}
	return ""
}
