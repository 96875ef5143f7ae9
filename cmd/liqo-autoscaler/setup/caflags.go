package setup

import (
	"strconv"
	"strings"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// MinProvision is CA's default for --max-node-provision-time.
const MinProvision = 15 * time.Minute

// CAFlag is a flag of Cluster Autoscaler (1.30 and later) that liqo-autoscaler needs or recommends.
type CAFlag struct {
	// Name is the name of the flag. If CA accepts the flag several times, Name has a suffix such as "_1", which CA's
	// chart removes.
	Name, Value string
	// Why explains the flag to readers of the values file. Each element is one line.
	Why []string
}

// CAFlags returns CA's flags. It is the only place that defines them: `config cloud-config -o helm-values` prints
// them, and `make update` writes them into deploy/ca/values.yaml and the notes of our chart.
// docs/cluster-autoscaler.md explains each flag with references to CA's source.
func CAFlags(provision time.Duration) []CAFlag {
	minutes := strings.TrimSuffix(provision.String(), "0s")
	return []CAFlag{
		{"cloud-config", "/etc/liqo-autoscaler/config/cloud-config.yaml", []string{
			"The value cloudConfigPath of CA's chart has no effect with externalgrpc.",
			"If CA's pod has HTTPS_PROXY, add .svc to NO_PROXY (extraEnv). Otherwise CA sends its gRPC calls to the proxy."}},
		{"max-node-provision-time", minutes, []string{
			"Three minutes more than the largest budgets.total of the node groups. With a shorter",
			"time, CA deletes nodes that are still being created. From CA 1.35 on, set max-node-startup-time to the same",
			"value."}},
		{"enforce-node-group-min-size", "true", []string{
			"Without this flag CA does not scale out to the min of a node group, and min limits only the scale-in."}},
		{"initial-node-group-backoff-duration", "30s", []string{
			"How long CA backs off a node group after a failure (by default 5m to 30m). Here a failed scale-out has cost",
			"nothing, and capacity may be free again soon."}},
		{"max-node-group-backoff-duration", "3m", nil},
		{"ok-total-unready-count", "1000", []string{
			"By default CA stops scaling while more than 3 nodes, and more than 45 % of all nodes, are unready. With this",
			"value the unready nodes of one provider do not stop CA."}},
		{"skip-nodes-with-local-storage", "false", []string{
			"By default CA never removes a node with pods of kube-system or with an emptyDir. Most virtual nodes have such",
			"pods."}},
		{"skip-nodes-with-system-pods", "false", nil},
		{"ignore-daemonsets-utilization", "true", []string{
			"Pods of DaemonSets that tolerate every taint are bound to virtual nodes but never run there, so CA must not",
			"count them as load."}},
		{"node-info-cache-expire-time", "10m", []string{
			"For this time CA assumes that all nodes of a group are like the group's first Node. The default is ten years."}},
		{"node-deletion-batcher-interval", "1s", []string{
			"With this interval CA deletes all idle nodes of a group by one call, not by up to ten concurrent calls."}},
		{"balance-similar-node-groups", "true", []string{
			"CA splits a scale-out between node groups that have the same value of this label."}},
		{"balancing-label_1", fleet.LabelBalance, nil},
		{"expander", "least-waste", []string{
			"If several node groups fit, CA chooses the group in which the least capacity stays unused."}},
		{"write-status-configmap", "true", []string{
			"`kubectl get configmap cluster-autoscaler-status` shows the state of the node groups in CA."}},
	}
}

// withGRPCExpander returns the flags with --expander=grpc instead of another expander. The gRPC server at the address
// then chooses the node group. The parameter authority is the file with the certificate authority that verifies the
// server.
func withGRPCExpander(flags []CAFlag, address, authority string) (out []CAFlag) {
	for _, f := range flags {
		if f.Name != "expander" {
			out = append(out, f)
			continue
		}
		out = append(out, CAFlag{"expander", "grpc,least-waste", []string{
			"If several node groups fit, the gRPC server (--grpc-expander) chooses by the current prices, then by existing",
			"peerings, then by the unused capacity. While it does not answer, CA chooses itself."}},
			CAFlag{"grpc-expander-url", address, nil}, CAFlag{"grpc-expander-cert", authority, nil})
	}
	return out
}

// YAML returns the value in YAML, in quotes if necessary.
func (f CAFlag) YAML() string {
	if _, err := strconv.ParseBool(f.Value); err == nil {
		return f.Value
	}
	if _, err := strconv.Atoi(f.Value); err == nil {
		return f.Value
	}
	return strconv.Quote(f.Value)
}
