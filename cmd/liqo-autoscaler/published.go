package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
)

// defaultNamespace is where the docs install us and Cluster Autoscaler.
const defaultNamespace = "liqo-autoscaler"

// Times of a look at the published market.
const (
	oldMarket     = 3 * time.Minute // when one that was not written again is worth a word
	marketTimeout = 5 * time.Second
)

// published says where commands for people read the market that the worker publishes.
type published struct{ namespace, file string }

func (p *published) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.namespace, "market-namespace", defaultNamespace,
		"namespace of the ConfigMap "+market.ConfigMapName("HUB")+", where the worker publishes what is offered now")
	cmd.Flags().StringVar(&p.file, "market-file", "", "file for the same, where all processes run on one machine")
}

func registerKubeconfig(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "kubeconfig", "",
		"access to the consumer cluster (default: as kubectl has it, or in-cluster)")
}

// personal is the access of the person who runs the command.
func personal(kubeconfig string) (*rest.Config, error) {
	return asKubectl(kubeconfig, "access to the consumer cluster (--kubeconfig, KUBECONFIG or ~/.kube/config)")
}

// asKubectl is the access that kubectl would use. An error begins with what it is for.
func asKubectl(kubeconfig, what string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	access, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return access, nil
}

// ask reads the market with the access of the person who runs the command, and writes to notes what is wrong with it.
// It is nil when it cannot be read; without access to a cluster nobody asked for it, and there is no note.
func (p published) ask(ctx context.Context, kubeconfig, hub string, notes io.Writer) *market.Market {
	var kube kubernetes.Interface
	if p.file == "" {
		access, err := personal(kubeconfig)
		if err != nil {
			return nil
		}
		if kube, err = kubernetes.NewForConfig(access); err != nil {
			fmt.Fprintln(notes, "not shown:", err)
			return nil
		}
	}
	m, note := p.read(ctx, kube, hub)
	if note != "" {
		fmt.Fprintln(notes, "note:", note)
	}
	return m
}

// read reads the market. note says why it is not there, or is not to be believed. kube is not asked when a file is
// named.
func (p published) read(ctx context.Context, kube kubernetes.Interface, hub string) (m *market.Market, note string) {
	var store market.Store = market.ConfigMap{Client: kube, Namespace: p.namespace, Name: market.ConfigMapName(hub)}
	if p.file != "" {
		store = market.File(p.file)
	}
	ctx, cancel := context.WithTimeout(ctx, marketTimeout)
	defer cancel()
	found, err := store.Load(ctx)
	if err != nil {
		return nil, fmt.Sprintf("what is offered now: %v", err)
	}
	if age := time.Since(found.At); age > oldMarket {
		note = fmt.Sprintf("the market was published %s ago: does a worker run?", age.Round(time.Second))
	}
	return &found, note
}
