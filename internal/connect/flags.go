// Package connect connects commands to Temporal: it reads the settings for the address and the credentials, and
// explains failures.
//
// Flags override the environment variables TEMPORAL_*, which the temporal CLI also reads. These variables override a
// profile in the config file of the temporal CLI. The package reads certificates again for each new connection, and
// the file with the API key for each request. Therefore a renewed certificate or key needs no restart.
package connect

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/contrib/envconfig"
)

// These constants are the default address and namespace of Temporal.
const (
	DefaultAddress   = "127.0.0.1:7233"
	DefaultNamespace = "default"
)

// Flags holds the flags for Temporal. If a flag is empty, the environment, the profile or the default applies.
type Flags struct {
	Address, Namespace   string
	ConfigFile, Profile  string
	TLS                  Toggle
	CA, Cert, Key        string // paths of files
	ServerName, APIKeyIn string // a name, and the path of a file
	CodecKeys            string // the path of a file
}

// Register adds the flags to a command and its subcommands.
func (f *Flags) Register(cmd *cobra.Command) {
	p := cmd.PersistentFlags()
	p.StringVar(&f.Address, "temporal-address", "",
		"host:port of the Temporal frontend ($TEMPORAL_ADDRESS; default "+DefaultAddress+")")
	p.StringVar(&f.Namespace, "temporal-namespace", "",
		"Temporal namespace ($TEMPORAL_NAMESPACE; default "+DefaultNamespace+")")
	p.StringVar(&f.ConfigFile, "temporal-config-file", "", "the temporal CLI's config file ($TEMPORAL_CONFIG_FILE)")
	p.StringVar(&f.Profile, "temporal-profile", "", "profile in the temporal CLI's config file ($TEMPORAL_PROFILE)")
	p.Var(&f.TLS, "temporal-tls", "use TLS to Temporal; other TLS settings and an API key imply it ($TEMPORAL_TLS)")
	p.Lookup("temporal-tls").NoOptDefVal = "true"
	p.StringVar(&f.CA, "temporal-tls-ca", "",
		"PEM file with the authorities for Temporal's certificate; default the system's ($TEMPORAL_TLS_SERVER_CA_CERT_PATH)")
	p.StringVar(&f.Cert, "temporal-tls-cert", "",
		"PEM file with our client certificate and its chain ($TEMPORAL_TLS_CLIENT_CERT_PATH)")
	p.StringVar(&f.Key, "temporal-tls-key", "",
		"PEM file with the key of our client certificate ($TEMPORAL_TLS_CLIENT_KEY_PATH)")
	p.StringVar(&f.ServerName, "temporal-tls-server-name", "",
		"name that Temporal's certificate must contain; default the host of the address ($TEMPORAL_TLS_SERVER_NAME)")
	p.StringVar(&f.APIKeyIn, "temporal-api-key-file", "",
		"file with an API key ($TEMPORAL_API_KEY contains the key itself)")
	p.StringVar(&f.CodecKeys, "temporal-codec-key-file", "",
		"file with the keys for payloads, one per line: NAME BASE64; the first key encrypts new payloads")
}

// Toggle is the value of a flag that is on, off, or not set.
type Toggle string

// Set implements pflag.Value. It returns an error if the text is not a boolean.
func (t *Toggle) Set(s string) error {
	on, err := strconv.ParseBool(s)
	if err != nil {
		return errors.New("use true or false")
	}
	*t = Toggle(strconv.FormatBool(on))
	return nil
}

// String implements pflag.Value.
func (t *Toggle) String() string { return string(*t) }

// Type implements pflag.Value. It returns the name of the flag's type in the help.
func (t *Toggle) Type() string { return "bool" }

// profile merges the settings of the config file, the environment and the flags.
func (f *Flags) profile() (envconfig.ClientConfigProfile, error) {
	if err := f.fileExists(); err != nil {
		return envconfig.ClientConfigProfile{}, err
	}
	p, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{
		ConfigFilePath: f.ConfigFile, ConfigFileProfile: f.Profile, DisableFile: f.noFileNamed(),
	})
	if err != nil {
		return p, fmt.Errorf("settings for Temporal (file, profile and TEMPORAL_* variables): %w", err)
	}
	p.Address = cmp.Or(f.Address, p.Address, DefaultAddress)
	p.Namespace = cmp.Or(f.Namespace, p.Namespace, DefaultNamespace)
	f.overrideTLS(&p)
	return p, nil
}

// overrideTLS changes the TLS settings of the profile: each TLS flag that is set replaces a setting.
func (f *Flags) overrideTLS(p *envconfig.ClientConfigProfile) {
	if f.TLS == "" && f.CA == "" && f.Cert == "" && f.Key == "" && f.ServerName == "" {
		return
	}
	p.TLS = cmp.Or(p.TLS, &envconfig.ClientConfigTLS{})
	if f.TLS != "" {
		p.TLS.Disabled = f.TLS == "false"
	}
	if f.CA != "" {
		p.TLS.ServerCACertPath, p.TLS.ServerCACertData = f.CA, nil
	}
	if f.Cert != "" {
		p.TLS.ClientCertPath, p.TLS.ClientCertData = f.Cert, nil
	}
	if f.Key != "" {
		p.TLS.ClientKeyPath, p.TLS.ClientKeyData = f.Key, nil
	}
	p.TLS.ServerName = cmp.Or(f.ServerName, p.TLS.ServerName)
}

// fileExists returns an error if a setting contains the path of a config file that does not exist. The SDK would
// ignore such a setting without an error, and might then connect to another Temporal.
func (f *Flags) fileExists() error {
	name, path := "--temporal-config-file", f.ConfigFile
	if path == "" {
		name, path = "TEMPORAL_CONFIG_FILE", os.Getenv("TEMPORAL_CONFIG_FILE")
	}
	if _, err := os.Stat(path); path != "" && err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// noFileNamed reports whether two conditions are true: no setting selects a config file or a profile, and the default
// config file of the temporal CLI cannot be read.
func (f *Flags) noFileNamed() bool {
	named := cmp.Or(f.ConfigFile, f.Profile, os.Getenv("TEMPORAL_CONFIG_FILE"), os.Getenv("TEMPORAL_PROFILE"))
	if named != "" {
		return false
	}
	_, err := os.Stat(envconfig.DefaultConfigFilePath())
	return err != nil
}
