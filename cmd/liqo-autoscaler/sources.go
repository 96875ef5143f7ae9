package main

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
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// sources say where offers come from. At least one is needed; several are merged: of a provider that two declare, the
// Secret serves before the file; the discovery server's writers declare nothing.
type sources struct {
	files            []string
	secretsNamespace string
	server           client.Options
}

func (s *sources) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&s.files, "offers", nil, "source of offers: a YAML file; may be repeated")
	f.StringVar(&s.secretsNamespace, "offer-secrets-namespace", "",
		"source of offers: Secrets labelled "+secrets.Label.String()+" in this namespace of the consumer cluster")
	registerDiscovery(cmd, &s.server, "source of offers: the discovery server, https://host:port")
	f.StringSliceVar(&s.server.SecretNamespaces, "discovery-secret-namespaces", nil,
		"namespaces of the consumer cluster whose Secrets offers of the discovery server may refer to")
	f.StringSliceVar(&s.server.NetworkCIDRs, "discovery-network-cidrs", nil,
		"where addresses must lie that offers of the discovery server name for their network (default: they may name none)")
}

// given reports whether any source is named.
func (s sources) given() bool {
	return len(s.files) > 0 || s.secretsNamespace != "" || s.server.URL != ""
}

func (s sources) check() error {
	if !s.given() {
		return errors.New("no source of offers: give --offers, --offer-secrets-namespace or --discovery-url, or several of " +
			"them")
	}
	o := s.server
	if err := checkDiscovery(o); err != nil {
		return err
	}
	switch {
	case o.URL == "" && (len(o.SecretNamespaces) > 0 || len(o.NetworkCIDRs) > 0):
		return errors.New("--discovery-secret-namespaces and --discovery-network-cidrs need --discovery-url")
	case o.URL != "" && len(o.SecretNamespaces) == 0:
		return errors.New("--discovery-url needs --discovery-secret-namespaces: which Secrets the offers there may refer to")
	}
	return nil
}

// offers are the catalog of all sources, and what keeps it current.
type offers struct {
	discovery.Catalog
	// watch blocks until ctx ends; meanwhile the catalog can answer.
	watch func(ctx context.Context) error
}

// open makes the catalog of all sources, each provider identified by the backend. consumer is the access to the
// consumer cluster, nil when there is none.
func (s sources) open(b backend.Backend, consumer *rest.Config, hub workflows.Hub) (*offers, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	var all []discovery.Source
	out := &offers{watch: func(ctx context.Context) error { <-ctx.Done(); return nil }}
	options := discovery.Options{Peered: b.Peers, Hub: string(hub)}
	if s.secretsNamespace != "" {
		source, err := s.secrets(consumer)
		if err != nil {
			return nil, err
		}
		all = append(all, source)
		out.watch = source.Run
		options.SecretVersion = source.Version
	}
	for _, path := range s.files {
		source, err := file.Open(path)
		if err != nil {
			return nil, err
		}
		if len(s.files) > 1 {
			source.Rename("file " + path)
		}
		all = append(all, source)
	}
	if s.server.URL != "" {
		connection, err := client.New(s.server)
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

func (s sources) secrets(consumer *rest.Config) (*secrets.Source, error) {
	if consumer == nil {
		return nil, errors.New("--offer-secrets-namespace needs a consumer cluster: use --backend liqo")
	}
	access, err := kubernetes.NewForConfig(consumer)
	if err != nil {
		return nil, fmt.Errorf("open consumer cluster for offer secrets: %w", err)
	}
	return secrets.New(access, secrets.Options{Namespace: s.secretsNamespace})
}
