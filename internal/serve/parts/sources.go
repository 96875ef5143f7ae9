package parts

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/file"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/secrets"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// Sources holds the flags that select the sources of offers. At least one source is required. The offers of several
// sources are merged. If a Secret and a file contain an offer of the same provider, the Secret has precedence. Offers
// of the discovery server do not contain the id of their provider.
type Sources struct {
	Files            []string
	SecretsNamespace string
	Server           client.Options
}

// Register adds the flags.
func (s *Sources) Register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&s.Files, "offers", nil, "source of offers: a YAML file; may be repeated")
	f.StringVar(&s.SecretsNamespace, "offer-secrets-namespace", "",
		"source of offers: Secrets labelled "+secrets.Label.String()+" in this namespace of the consumer cluster")
	serve.RegisterDiscovery(cmd, &s.Server, "source of offers: the discovery server, https://host:port")
	f.StringSliceVar(&s.Server.SecretNamespaces, "discovery-secret-namespaces", nil,
		"namespaces of the consumer cluster; an offer of the discovery server may refer only to Secrets in these namespaces")
	f.StringSliceVar(&s.Server.NetworkCIDRs, "discovery-network-cidrs", nil,
		"CIDRs; each network address in an offer of the discovery server must be in one of these CIDRs (default: none is "+
			"allowed)")
}

// Given reports whether a flag selects a source.
func (s Sources) Given() bool {
	return len(s.Files) > 0 || s.SecretsNamespace != "" || s.Server.URL != ""
}

// Check returns an error if no source is set, or if flags of a source are missing.
func (s Sources) Check() error {
	if !s.Given() {
		return errors.New("no source of offers: give --offers, --offer-secrets-namespace or --discovery-url, or several of " +
			"them")
	}
	o := s.Server
	if err := serve.CheckDiscovery(o); err != nil {
		return err
	}
	switch {
	case o.URL == "" && (len(o.SecretNamespaces) > 0 || len(o.NetworkCIDRs) > 0):
		return errors.New("--discovery-secret-namespaces and --discovery-network-cidrs need --discovery-url")
	case o.URL != "" && len(o.SecretNamespaces) == 0:
		return errors.New("--discovery-url needs --discovery-secret-namespaces: an offer may refer only to Secrets in " +
			"these namespaces")
	}
	return nil
}

// Offers holds the combined catalog of all sources.
type Offers struct {
	discovery.Catalog
	// Watch follows the changes of the sources, and blocks until ctx ends. The catalog returns offers only while
	// Watch runs.
	Watch func(ctx context.Context) error
}

// Open returns the combined catalog of all sources. To find out to which provider an offer belongs, the catalog uses
// the backend, which reads the cluster id of the provider. consumer is the access to the consumer cluster, or nil.
func (s Sources) Open(b backend.Backend, consumer *rest.Config, hub workflows.Hub) (*Offers, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	var all []discovery.Source
	out := &Offers{Watch: func(ctx context.Context) error { <-ctx.Done(); return nil }}
	peers := func(ctx context.Context) ([]fleet.Provider, error) { return b.Peers(ctx, "") }
	options := discovery.Options{Peered: peers, Hub: string(hub)}
	if s.SecretsNamespace != "" {
		source, err := s.secrets(consumer)
		if err != nil {
			return nil, err
		}
		all = append(all, source)
		out.Watch = source.Run
		options.SecretVersion = source.Version
	}
	for _, path := range s.Files {
		source, err := file.Open(path)
		if err != nil {
			return nil, err
		}
		if len(s.Files) > 1 {
			source.Rename("file " + path)
		}
		all = append(all, source)
	}
	if s.Server.URL != "" {
		connection, err := client.New(s.Server)
		if err != nil {
			return nil, err
		}
		source, err := client.NewSource(connection)
		if err != nil {
			return nil, err
		}
		all = append(all, source)
	}
	var catalogs []discovery.NamedCatalog
	for _, source := range all {
		catalogs = append(catalogs, discovery.Resolve(source, b, options))
	}
	out.Catalog = catalogs[0]
	if len(catalogs) > 1 {
		out.Catalog = discovery.Merge(catalogs...)
	}
	return out, nil
}

// secrets returns the source that reads offers from Secrets of the consumer cluster.
func (s Sources) secrets(consumer *rest.Config) (*secrets.Source, error) {
	if consumer == nil {
		return nil, errors.New("--offer-secrets-namespace needs a consumer cluster: use --backend liqo")
	}
	access, err := kubernetes.NewForConfig(consumer)
	if err != nil {
		return nil, fmt.Errorf("open consumer cluster for offer secrets: %w", err)
	}
	return secrets.New(access, secrets.Options{Namespace: s.SecretsNamespace})
}
