package providers

import (
	"fmt"
	"io"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/provider"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Access holds the flags that select the manifests that a provider applies for a consumer.
type Access struct {
	// LiqoNamespace is the namespace in which Liqo runs on the provider.
	LiqoNamespace string
	noPolicy      bool
	podSecurity   string
	networks      []string
}

// Register adds all flags except one for LiqoNamespace.
func (a *Access) Register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&a.noPolicy, "no-policy", false,
		"omit the admission policies, for a provider with Kubernetes before 1.30")
	flags.StringVar(&a.podSecurity, "pod-security", podBaseline, "pods that the consumer may run on this "+
		"provider: "+podBaseline+
		" (of the Pod Security Standards) or "+podPrivileged+", which omits the policies for pods and Services")
	flags.StringSliceVar(&a.networks, "consumer-networks", nil, "the consumer's pod and external networks, such as "+
		"10.1.0.0/16; the consumer's Configurations may contain only these, exactly as written (default: any networks)")
}

// Manifest returns the YAML of the objects that the flags describe, and the policies that the YAML contains.
func (a *Access) Manifest(consumer string) (manifest string, policies provider.Policies, err error) {
	if !fleet.ValidProviderID(a.LiqoNamespace) || a.LiqoNamespace == provider.Namespace {
		return "", 0, fmt.Errorf("--liqo-namespace %q: give the name of a namespace other than %s, the namespace of the "+
			"accounts",
			a.LiqoNamespace, provider.Namespace)
	}
	known, err := prefixes(a.networks)
	if err != nil {
		return "", 0, err
	}
	policies = provider.PodPolicies
	switch {
	case a.podSecurity != podBaseline && a.podSecurity != podPrivileged:
		return "", 0, fmt.Errorf("--pod-security %q: use %s or %s", a.podSecurity, podBaseline, podPrivileged)
	case a.noPolicy:
		policies = provider.NoPolicies
	case a.podSecurity == podPrivileged:
		policies = provider.AccessPolicies
	}
	return provider.Manifest(consumer, a.LiqoNamespace, policies, known...), policies, nil
}

// NewProviderAccess returns the command provider-access.
func NewProviderAccess() *cobra.Command {
	var f consumerFlags
	var access Access
	cmd := &cobra.Command{
		Use:   "provider-access",
		Short: "Print manifests that give a consumer access to this provider",
		Long: `Print manifests that give a consumer access to this provider, limited to its own tenant namespace. The manifests
contain namespaces, an account, roles and admission policies. The policies prevent the account from gaining more
permissions. They also prevent the consumer's pods from taking over this provider's nodes. Apply the output as this
provider's administrator. Then create the kubeconfig of the account with provider-access kubeconfig: an offer contains
it as its credentials.`,
		Example: "  liqo-autoscaler provider-access --consumer-id munich | kubectl apply -f -\n" +
			"  liqo-autoscaler provider-access kubeconfig --consumer-id munich --server https://milan.example.com:6443 > " +
			"milan.kubeconfig",
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return f.check() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			manifest, policies, err := access.Manifest(f.id)
			if err != nil {
				return err
			}
			fmt.Fprint(cmd.OutOrStdout(), manifest)
			explainAccess(cmd.ErrOrStderr(), f.id, policies)
			return nil
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&access.LiqoNamespace, "liqo-namespace", "liqo", "namespace of the provider's Liqo")
	access.Register(cmd)
	cmd.AddCommand(newProviderKubeconfig(), newProviderRenew(), newProviderAccessList(), newProviderAccessRevoke())
	return cmd
}

// prefixes parses networks. It returns an error for an address within a network, such as 10.0.0.1/8, because the
// policies compare the networks with the form that Liqo's IPAM on the consumer writes.
func prefixes(networks []string) (all []netip.Prefix, err error) {
	for _, network := range networks {
		prefix, err := netip.ParsePrefix(network)
		if err != nil || prefix != prefix.Masked() {
			return nil, fmt.Errorf("--consumer-networks %q: give networks such as 10.1.0.0/16, as kubectl get "+
				"networks.ipam.liqo.io -n liqo shows them on the consumer", network)
		}
		all = append(all, prefix)
	}
	return all, nil
}

// These are the values of --pod-security.
const (
	podBaseline   = "baseline"
	podPrivileged = "privileged"
)

func explainAccess(out io.Writer, consumer string, policies provider.Policies) {
	Warn(out, consumer, policies)
	fmt.Fprintf(out, "After the provider has applied this, create the kubeconfig of the account there:\n"+
		"  liqo-autoscaler provider-access kubeconfig --consumer-id %s --server https://API-SERVER > provider.kubeconfig\n",
		consumer)
}

// Warn prints which actions a consumer can take because policies are missing.
func Warn(out io.Writer, consumer string, policies provider.Policies) {
	switch policies {
	case provider.PodPolicies:
	case provider.AccessPolicies:
		fmt.Fprintf(out, "WARNING: with --pod-security privileged the pods of consumer %s may take over the nodes that\n"+
			"they run on. Give access only to consumers that may be administrators of these nodes.\n", consumer)
	case provider.NoPolicies:
		fmt.Fprintf(out, "WARNING: without the admission policies the account %s can make itself an administrator of the\n"+
			"provider's cluster, and undo a refusal in the Tenant. Give access only to consumers that may be administrators.\n",
			provider.Account(consumer))
	}
}
