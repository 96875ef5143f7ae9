package pair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/setup"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
)

// values contains the consumer's options for the values files. They do not depend on a provider, so setup for a
// further provider changes no values.
type values struct {
	image           string
	temporalAddress string
	plaintext       bool
	tlsSecret       string
	group           string
	maxNodes        int
	shape           corev1.ResourceList
}

const release = "liqo-autoscaler"

// chart returns the values for the chart of liqo-autoscaler.
func (v values) chart(consumer identity, certManager bool) (string, error) {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Values of the liqo-autoscaler chart for consumer %s, from liqo-autoscaler setup. Offers are Secrets, so a\n"+
		"# further provider changes no values. All values: deploy/helm/liqo-autoscaler/README.md", consumer.ID)
	if v.image != "" {
		line("image: {repository: %q}", v.image)
	}
	if v.temporalAddress != "" {
		line("temporal: {address: %q, setup: {enabled: true}}", v.temporalAddress)
	} else {
		line("temporal: {bundled: {enabled: true}} # for trials and small clusters: docs/temporal.md")
	}
	if consumer.liqoNamespace != "liqo" {
		line("liqo: {namespace: %q}", consumer.liqoNamespace)
	}
	switch {
	case v.tlsSecret != "":
		line("tls: {existingSecret: %q}", v.tlsSecret)
	case v.plaintext:
		line("tls: {plaintext: true} # only for trials\nnetworkPolicy: {enabled: true}")
	case certManager:
		line("tls: {certManager: {enabled: true}}")
	default:
		return "", errors.New("the consumer has no cert-manager, which creates the certificates of the gRPC server and of " +
			"Cluster Autoscaler: install it, or give --tls-secret NAME with your own, or --plaintext for a trial")
	}
	line("offerSecrets: {enabled: true}")
	groups := fmt.Sprintf("nodeGroups:\n- id: %s\n  max: %d\n  shape: {%s}\n", v.group, v.maxNodes, flow(v.shape))
	if _, err := config.Parse([]byte(groups)); err != nil {
		return "", fmt.Errorf("--group, --max-nodes and --shape describe no node group:\n%w", err)
	}
	b.WriteString(groups)
	return b.String(), nil
}

// flow renders the amounts as a YAML flow mapping.
func flow(list corev1.ResourceList) string {
	var parts []string
	for _, name := range sorted(list) {
		amount := list[name]
		parts = append(parts, fmt.Sprintf("%s: %q", name, amount.String()))
	}
	return strings.Join(parts, ", ")
}

// autoscaler returns the values for Cluster Autoscaler's chart.
func (v values) autoscaler(consumer, namespace string) (string, error) {
	var b strings.Builder
	address := fmt.Sprintf("%s.%s.svc:8086", release, namespace)
	err := setup.HelmValues(&b, address, consumer, v.plaintext)
	return b.String(), err
}

// certManager reports whether the cluster has cert-manager.
func (c *cluster) certManager(_ context.Context) (bool, error) {
	groups, err := c.kube.Discovery().ServerGroups()
	if err != nil {
		return false, fmt.Errorf("%s: list its APIs: %w", c, err)
	}
	return slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == "cert-manager.io" }), nil
}
