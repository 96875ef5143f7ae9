package account

import "k8s.io/client-go/rest"

// Unverified returns why a configuration does not prove the identity of the server, with the cure; "" when it does. An
// attacker in the network would receive the token, and could impersonate the provider.
func Unverified(config *rest.Config) string {
	if config.Insecure {
		return "has insecure-skip-tls-verify: give it the certificate-authority-data of that API server instead"
	}
	if server, _, err := rest.DefaultServerUrlFor(config); err == nil && server.Scheme != "https" {
		return "has a server that is not https://: write the address at which its API server speaks TLS"
	}
	return ""
}
