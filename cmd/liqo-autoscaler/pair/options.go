package pair

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/providers"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// options contains the flags of the commands setup, setup provider and setup consumer.
type options struct {
	open opener

	kubeconfig                       string
	consumerContext, providerContext string
	consumerID, providerID           string
	dryRun, undo                     bool

	server   string
	access   providers.Access
	lasts    time.Duration
	lendable string
	price    float64
	currency string
	network  string
	measure  bool

	name, namespace string
	values          values
	shape           string
	files           [2]string // values files of our chart and of Cluster Autoscaler's chart
	from, output    string
	bound           corev1.ResourceList
	changedAmounts  bool // --measure or --lendable was given
}

func (o *options) registerBoth(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "the kubeconfig with the contexts (default: as kubectl finds it)")
	f.BoolVar(&o.dryRun, "dry-run", false, "read and check everything, request no token, and change nothing")
	f.BoolVar(&o.undo, "undo", false, "remove the objects with the label of setup; fails while nodes or a peering exist")
}

func (o *options) registerProvider(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.server, "provider-server", "", "address at which the consumer reaches the provider's API server, "+
		"https://host:port (default: the address in the kubeconfig, unless it is a loopback address)")
	f.StringVar(&o.lendable, "lendable", "", "maximum amounts of the offer, such as cpu=16,memory=32Gi (default: "+
		"the capacity that is free now)")
	f.Float64Var(&o.price, "price", 0, "price of the offer per node and hour (default: none, which counts as free)")
	f.StringVar(&o.currency, "currency", "", "currency of the price (default: the currency of the node groups)")
	f.StringVar(&o.network, "network", "", "network of the peering, such as mode=gateway,serviceType=NodePort "+
		"(default: a pair of gateways)")
	o.access.Register(cmd)
	providers.RegisterDuration(cmd, &o.lasts)
}

func (o *options) registerConsumer(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.name, "name", "", "name of the offer and of its Secret (default: the provider's id)")
	f.StringVarP(&o.namespace, "namespace", "n", release, "namespace of the Secret and of the chart's release")
	f.StringVar(&o.files[0], "values", "values.yaml", "file that receives the values of the liqo-autoscaler chart")
	f.StringVar(&o.files[1], "ca-values", "ca-values.yaml", "file that receives the values of Cluster Autoscaler's chart")
	f.StringVar(&o.values.image, "image", "", "repository of the image in the values (default: the chart's)")
	f.StringVar(&o.values.tlsSecret, "tls-secret", "",
		"Secret with the gRPC server's certificates, in the values (default: cert-manager creates them)")
	f.BoolVar(&o.values.plaintext, "plaintext", false,
		"write values without TLS between Cluster Autoscaler and the gRPC server; only for trials")
	f.StringVar(&o.values.group, "group", "standard", "id of the node group in the values")
	cli.Values(cmd, "group") // a new id
	f.IntVar(&o.values.maxNodes, "max-nodes", 4, "maximum number of nodes of that group")
	f.StringVar(&o.shape, "shape", "cpu=2,memory=4Gi,pods=30,ephemeral-storage=10Gi", "amounts of each node of that group")
}

// check completes the options. It returns an error for options that are invalid for every cluster.
func (o *options) check(cmd *cobra.Command) (err error) {
	if !fleet.ValidProviderID(o.namespace) {
		return fmt.Errorf("--namespace %q: give the name of a namespace", o.namespace)
	}
	if o.values.plaintext && o.values.tlsSecret != "" {
		return errors.New("give --plaintext or --tls-secret, not both")
	}
	if o.price < 0 {
		return fmt.Errorf("--price %g: give a price of zero or more", o.price)
	}
	if o.lasts < minToken && cmd.Flags().Lookup("duration") != nil {
		return fmt.Errorf("--duration %s: give at least %s", o.lasts, minToken)
	}
	o.changedAmounts = o.measure || o.lendable != ""
	return o.parse()
}

// parse checks the address of the provider's server, and parses amounts and the network.
func (o *options) parse() (err error) {
	if o.server != "" {
		if err := checkServer("--provider-server", o.server); err != nil {
			return err
		}
	}
	if o.bound, err = amounts("lendable", o.lendable); err != nil {
		return err
	}
	if o.values.shape, err = amounts("shape", o.shape); err != nil {
		return err
	}
	_, err = network(o.network)
	return err
}

// minToken is the shortest lifetime of a token that Kubernetes issues.
const minToken = 10 * time.Minute
