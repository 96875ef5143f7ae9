package serve

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
)

// RegisterDiscovery adds the flags for a client of the discovery server. url is the help text of --discovery-url.
func RegisterDiscovery(cmd *cobra.Command, o *client.Options, url string) {
	f := cmd.Flags()
	f.StringVar(&o.URL, "discovery-url", "", url)
	f.StringVar(&o.CAFile, "discovery-ca", "",
		"PEM file with the authorities for the discovery server's certificate (default: the system's)")
	f.StringVar(&o.TokenFile, "discovery-token-file", "", "file with the bearer token for the discovery server")
	f.StringVar(&o.CertFile, "discovery-cert", "",
		"PEM file with a client certificate and its chain, which the discovery server accepts instead of a token")
	f.StringVar(&o.KeyFile, "discovery-key", "", "PEM file with the key of that client certificate")
}

// CheckDiscovery returns an error if a flag of the client is missing, or is set without --discovery-url.
func CheckDiscovery(o client.Options) error {
	switch {
	case o.URL == "" && (o.CAFile != "" || o.TokenFile != "" || o.CertFile != "" || o.KeyFile != ""):
		return errors.New("--discovery-ca, --discovery-token-file, --discovery-cert and --discovery-key need --discovery-url")
	case (o.CertFile == "") != (o.KeyFile == ""):
		return errors.New("give --discovery-cert and --discovery-key, or neither")
	case o.URL != "" && o.TokenFile == "" && o.CertFile == "":
		return errors.New("--discovery-url needs --discovery-token-file, or --discovery-cert and --discovery-key")
	}
	return nil
}
