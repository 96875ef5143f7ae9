package main

import (
	"fmt"
	"io"
	"net"
	"path"
	"strings"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
)

// cloudConfig is what Cluster Autoscaler must know of us: its --cloud-config file, and the values of its Helm chart.
type cloudConfig struct {
	// The keys of CA's file (CA cloudprovider/externalgrpc/README.md). TLS needs all three files; without Cert it is off.
	Address, Cert, Key, CACert string
	GRPCTimeout                time.Duration
	// ClusterName is for the chart alone, which renders nothing without it.
	ClusterName string
	// EnforceMin and MaxProvision come from the node groups.
	EnforceMin   bool
	MaxProvision time.Duration
}

// minProvision is CA's default for --max-node-provision-time.
const minProvision = 15 * time.Minute

func newCloudConfig() *cobra.Command {
	c := cloudConfig{MaxProvision: minProvision}
	var plaintext bool
	var output, groups string
	cmd := &cobra.Command{
		Use:   "cloud-config",
		Short: "Print Cluster Autoscaler's --cloud-config file, or the values of its Helm chart",
		Long: `Print the file for Cluster Autoscaler's --cloud-config, or with -o helm-values the values of its Helm chart that go with
it. --config adapts the values to your node groups. Certificates are those of Cluster Autoscaler as the client.`,
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
		"host:port of the gRPC server; the host must be in its certificate")
	f.StringVar(&c.Cert, "cert", "/etc/liqo-autoscaler/tls/tls.crt",
		"path of the client's certificate in Cluster Autoscaler's container")
	f.StringVar(&c.Key, "key", "/etc/liqo-autoscaler/tls/tls.key", "path of its key")
	f.StringVar(&c.CACert, "cacert", "/etc/liqo-autoscaler/tls/ca.crt",
		"path of the authority of the server's certificate")
	f.BoolVar(&plaintext, "plaintext", false, "no TLS; only where nobody else can reach the server")
	f.DurationVar(&c.GRPCTimeout, "grpc-timeout", 5*time.Second, "how long Cluster Autoscaler waits for an answer")
	f.StringVar(&c.ClusterName, "cluster-name", "consumer", "name of the cluster, which the Helm chart asks for")
	f.StringVar(&groups, "config", "", "YAML file with the node groups")
	f.StringVarP(&output, "output", "o", "file", "what to print: file or helm-values")
	return cmd
}

// adapt checks the input and takes from the node groups what concerns CA.
func (c *cloudConfig) adapt(groups string) error {
	if _, _, err := net.SplitHostPort(c.Address); err != nil {
		return fmt.Errorf("--address: %w", err)
	}
	if c.GRPCTimeout < time.Second {
		return fmt.Errorf("--grpc-timeout %s: give at least 1s; Cluster Autoscaler's own default is 5s", c.GRPCTimeout)
	}
	if c.Cert != "" && (c.Key == "" || c.CACert == "") {
		return fmt.Errorf("--cert needs --key and --cacert: Cluster Autoscaler knows no TLS without all three")
	}
	if groups == "" {
		return nil
	}
	cfg, err := config.Load(groups)
	if err != nil {
		return err
	}
	for _, g := range cfg.NodeGroups {
		c.EnforceMin = c.EnforceMin || g.Min > 0
		// CA must not give up before we do: our own deadline and two of its loops.
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
	t, err := template.New(output).Funcs(template.FuncMap{"minutes": minutes, "dir": path.Dir}).Parse(text)
	if err != nil {
		return fmt.Errorf("make %s: %w", output, err)
	}
	return t.Execute(out, c)
}

// minutes prints a duration of whole minutes without zeros.
func minutes(d time.Duration) string { return strings.TrimSuffix(d.String(), "0s") }

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

const helmValues = `# Values of the chart cluster-autoscaler for liqo-autoscaler. Before installing it, in its namespace:
#   liqo-autoscaler config cloud-config > cloud-config.yaml   # with the same flags as for these values
#   kubectl create secret generic liqo-autoscaler-cloud-config --from-file=cloud-config.yaml
{{- if .Cert }}
# and a Secret liqo-autoscaler-client-tls with the files of {{ dir .Cert }}, such as cert-manager makes.
{{- end }}
cloudProvider: externalgrpc
autoDiscovery:
  clusterName: {{ printf "%q" .ClusterName }} # without it the chart renders no Deployment
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
  cloud-config: /etc/liqo-autoscaler/config/cloud-config.yaml # cloudConfigPath of the chart has no effect here
  max-node-provision-time: {{ minutes .MaxProvision }} # longer than budgets.total of all node groups
  enforce-node-group-min-size: {{ .EnforceMin }} # needed when a group's min is above 0
  skip-nodes-with-local-storage: false # or nodes with an emptyDir pod are never given back
  skip-nodes-with-system-pods: false
  write-status-configmap: true
  # From Cluster Autoscaler 1.35 on: max-node-startup-time, at least the time until a node is Ready.
  # To spread over similar groups:
  # balance-similar-node-groups: true
  # balancing-ignore-label_1: liqo.io/remote-cluster-id
  # balancing-ignore-label_2: liqo-autoscaler.io/group
`
