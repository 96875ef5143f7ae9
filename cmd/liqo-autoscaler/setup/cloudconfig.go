package setup

import (
	"fmt"
	"io"
	"net"
	"path"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
)

// cloudConfig holds Cluster Autoscaler's settings for our server: its --cloud-config file, and the values of its Helm
// chart.
type cloudConfig struct {
	// These are the keys of CA's file (CA cloudprovider/externalgrpc/README.md). TLS needs Cert, Key and CACert.
	// Without Cert, CA uses plaintext.
	Address, Cert, Key, CACert string
	GRPCTimeout                time.Duration
	// ClusterName is a value of the chart. Without it the chart renders nothing.
	ClusterName string
	// MaxProvision is the value of max-node-provision-time. It is computed from the budgets of the node groups.
	MaxProvision time.Duration
	// GRPCExpander makes CA let the gRPC server choose the node group to grow.
	GRPCExpander bool
}

// Flags returns CA's flags for these settings.
func (c cloudConfig) Flags() []CAFlag {
	flags := CAFlags(c.MaxProvision)
	if c.GRPCExpander {
		return withGRPCExpander(flags, c.Address, c.CACert)
	}
	return flags
}

// These are paths in Cluster Autoscaler's container.
const (
	certPath = "/etc/liqo-autoscaler/tls/tls.crt"
	keyPath  = "/etc/liqo-autoscaler/tls/tls.key"
	caPath   = "/etc/liqo-autoscaler/tls/ca.crt"
)

// HelmValues writes values for Cluster Autoscaler's own Helm chart, for the gRPC server at the address.
func HelmValues(out io.Writer, address, clusterName string, plaintext bool) error {
	c := cloudConfig{Address: address, Cert: certPath, Key: keyPath, CACert: caPath, GRPCTimeout: grpcTimeout,
		ClusterName: clusterName, MaxProvision: MinProvision}
	if plaintext {
		c.Cert, c.Key, c.CACert = "", "", ""
	}
	if err := c.adapt(""); err != nil {
		return err
	}
	return c.print(out, "helm-values")
}

const grpcTimeout = 5 * time.Second

func newCloudConfig() *cobra.Command {
	c := cloudConfig{MaxProvision: MinProvision}
	var plaintext bool
	var output, groups string
	cmd := &cobra.Command{
		Use:   "cloud-config",
		Short: "Print Cluster Autoscaler's --cloud-config file, or the values of its Helm chart",
		Long: `Print the file for Cluster Autoscaler's flag --cloud-config. With -o helm-values, print matching values for Cluster
Autoscaler's Helm chart instead; --config adapts these values to your node groups. --cert is the path of Cluster
Autoscaler's client certificate.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if plaintext {
				c.Cert, c.Key, c.CACert = "", "", ""
			}
			if err := c.adapt(groups); err != nil {
				return err
			}
			return c.print(cmd.OutOrStdout(), output)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Address, "address", "liqo-autoscaler.liqo-autoscaler.svc:8086",
		"host:port of the gRPC server; the server's certificate must contain the host")
	f.StringVar(&c.Cert, "cert", certPath,
		"path of the client certificate in Cluster Autoscaler's container")
	f.StringVar(&c.Key, "key", keyPath, "path of the client certificate's key in that container")
	f.StringVar(&c.CACert, "cacert", caPath,
		"path of the authority for the server's certificate in that container")
	f.BoolVar(&plaintext, "plaintext", false, "no TLS; only if no other client can reach the server")
	f.DurationVar(&c.GRPCTimeout, "grpc-timeout", grpcTimeout, "how long Cluster Autoscaler waits for an answer")
	f.StringVar(&c.ClusterName, "cluster-name", "consumer", "name of the cluster; the Helm chart requires a name")
	f.BoolVar(&c.GRPCExpander, "grpc-expander", false, "for -o helm-values: Cluster Autoscaler lets the gRPC server "+
		"choose the node group to grow; start the server with --grpc-expander too")
	f.StringVar(&groups, "config", "", "YAML file with the node groups")
	f.StringVarP(&output, "output", "o", "file", "what to print: file or helm-values")
	cli.Values(cmd, "output", "file", "helm-values")
	return cmd
}

// adapt validates the settings, and adapts them to the node groups in the given file, if any.
func (c *cloudConfig) adapt(groups string) error {
	if _, _, err := net.SplitHostPort(c.Address); err != nil {
		return fmt.Errorf("--address: %w", err)
	}
	if c.GRPCTimeout < time.Second {
		return fmt.Errorf("--grpc-timeout %s: give at least 1s; Cluster Autoscaler's own default is 5s", c.GRPCTimeout)
	}
	if c.Cert != "" && (c.Key == "" || c.CACert == "") {
		return fmt.Errorf("--cert needs --key and --cacert: Cluster Autoscaler has no TLS without all three")
	}
	if c.GRPCExpander && c.CACert == "" {
		return fmt.Errorf("--grpc-expander needs --cacert and no --plaintext: Cluster Autoscaler calls its expander over " +
			"TLS only")
	}
	if groups == "" {
		return nil
	}
	cfg, err := config.Load(groups)
	if err != nil {
		return err
	}
	for _, g := range cfg.NodeGroups {
		// CA must not give up before the group does: the value covers the group's deadline and two of CA's loops.
		c.MaxProvision = max(c.MaxProvision, (g.Budgets.Total.Duration + 3*time.Minute).Round(time.Minute))
	}
	return nil
}

func (c *cloudConfig) print(out io.Writer, output string) error {
	text := cloudConfigFile
	switch output {
	case "file":
	case "helm-values":
		text = helmValues
	default:
		return fmt.Errorf("--output %q: use file or helm-values", output)
	}
	t, err := template.New(output).Funcs(template.FuncMap{"dir": path.Dir}).Parse(text)
	if err != nil {
		return fmt.Errorf("make %s: %w", output, err)
	}
	return t.Execute(out, c)
}

const cloudConfigFile = `# Cluster Autoscaler: --cloud-provider=externalgrpc --cloud-config=<this file>
address: {{ printf "%q" .Address }}
{{- if .Cert }}
cert: {{ printf "%q" .Cert }}
key: {{ printf "%q" .Key }}
cacert: {{ printf "%q" .CACert }}
{{- else }}
# no TLS: whoever reaches the server can create and delete nodes
{{- end }}
grpc_timeout: {{ .GRPCTimeout }}
`

const helmValues = `# Values for Cluster Autoscaler's own Helm chart, for use with liqo-autoscaler.
#
#   helm upgrade --install cluster-autoscaler <CA's chart> -n liqo-autoscaler -f <this file>
#
# The chart of liqo-autoscaler creates the two Secrets below. Without this chart, create the first Secret by:
#   liqo-autoscaler config cloud-config > cloud-config.yaml   # with the same flags as for these values
#   kubectl create secret generic liqo-autoscaler-cloud-config --from-file=cloud-config.yaml
{{- if .Cert }}
# and the second Secret with the files of {{ dir .Cert }}, for example by cert-manager.
{{- end }}
cloudProvider: externalgrpc
autoDiscovery:
  # externalgrpc does not use it, but CA's chart renders no Deployment without it.
  clusterName: {{ printf "%q" .ClusterName }}
extraVolumeSecrets:
  liqo-autoscaler-cloud-config:
    name: liqo-autoscaler-cloud-config
    mountPath: /etc/liqo-autoscaler/config
{{- if .Cert }}
  liqo-autoscaler-client-tls:
    name: liqo-autoscaler-client-tls
    mountPath: {{ dir .Cert }}
{{- end }}
extraArgs:
{{- range .Flags }}
  {{- range .Why }}
  # {{ . }}
  {{- end }}
  {{ .Name }}: {{ .YAML }}
{{- end }}
` + CAPod

// CAPod contains the values of CA's chart for CA's pod. The chart does not set these values. The values are two
// replicas, the settings for Pod Security's level restricted, and an affinity that keeps CA off the virtual nodes,
// because CA itself removes these nodes.
const CAPod = `# Only one replica is active. The other replica waits for its Lease.
replicaCount: 2
# With these security contexts Pod Security's level restricted admits the pod.
securityContext:
  runAsNonRoot: true
  runAsUser: 65534
  runAsGroup: 65534
  fsGroup: 65534
  seccompProfile: {type: RuntimeDefault}
containerSecurityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
# These resources are the same as in the examples of CA's repository. CA keeps all pods and nodes in memory, so raise
# the resources for a large cluster.
resources:
  requests: {cpu: 100m, memory: 300Mi}
# Keeps CA's pods away from Liqo's virtual nodes, which CA itself adds and removes.
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions:
        - {key: liqo.io/type, operator: NotIn, values: [virtual-node]}
`
