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
	// Name has a suffix "_1" where CA accepts a flag several times; CA's chart removes the suffix.
	Name, Value string
	// Why explains the flag to readers of the values.
	Why []string
}

// CAFlags returns CA's settings. It is their only source: `config cloud-config -o helm-values` prints them, and `make
// update` writes them into deploy/ca/values.yaml and the notes of our chart. docs/cluster-autoscaler.md contains the
// reasons with file and line.
func CAFlags(provision time.Duration) []CAFlag {
	minutes := strings.TrimSuffix(provision.String(), "0s")
	return []CAFlag{
		{"cloud-config", "/etc/liqo-autoscaler/config/cloud-config.yaml", []string{
			"The value cloudConfigPath of CA's chart has no effect for this provider.",
			"With HTTPS_PROXY in CA's pod, add .svc to NO_PROXY (extraEnv): otherwise CA's gRPC calls go to the proxy."}},
		{"max-node-provision-time", minutes, []string{
			"Above budgets.total of all node groups by three minutes: CA would give up on instances that still come.",
			"From CA 1.35 on, set max-node-startup-time to the same value."}},
		{"enforce-node-group-min-size", "true", []string{"Otherwise min of a node group is only a floor for scale-in."}},
		{"initial-node-group-backoff-duration", "30s", []string{
			"How long CA leaves a node group alone after a failure (5m to 30m by default). Here a failure has bought",
			"nothing, and room may be back soon."}},
		{"max-node-group-backoff-duration", "3m", nil},
		{"ok-total-unready-count", "1000", []string{
			"Unready nodes of one provider do not stop CA for the whole cluster (by default, more than 3 nodes and 45 %)."}},
		{"skip-nodes-with-local-storage", "false", []string{
			"Pods with an emptyDir and pods of kube-system run on most virtual nodes, which CA would then never release."}},
		{"skip-nodes-with-system-pods", "false", nil},
		{"ignore-daemonsets-utilization", "true", []string{
			"DaemonSets that tolerate everything are bound to virtual nodes and never run there."}},
		{"node-info-cache-expire-time", "10m", []string{
			"CA takes a node group's first Node for its shape for this long; by default for ten years."}},
		{"node-deletion-batcher-interval", "1s", []string{
			"CA then deletes the idle nodes of a group by one call, and not by ten calls at the same time."}},
		{"balance-similar-node-groups", "true", []string{
			"CA splits a scale-out between node groups to which you gave the same value of this label."}},
		{"balancing-label_1", fleet.LabelBalance, nil},
		{"expander", "least-waste", []string{
			"Of several node groups that fit, CA takes the group that leaves the least room unused."}},
		{"write-status-configmap", "true", []string{
			"`kubectl get configmap cluster-autoscaler-status` shows the node groups as CA sees them."}},
	}
}

// askingUs returns the flags with CA's --expander=grpc in place of its own choice: CA requests the choice from the gRPC
// server at address. authority is the CA certificate that verifies the server.
func askingUs(flags []CAFlag, address, authority string) (out []CAFlag) {
	for _, f := range flags {
		if f.Name != "expander" {
			out = append(out, f)
			continue
		}
		out = append(out, CAFlag{"expander", "grpc,least-waste", []string{
			"Of several node groups that fit, the gRPC server (--grpc-expander) chooses by what the offers cost now, then by",
			"the peerings that are there, then by the room left unused. While it does not answer, CA chooses by itself."}},
			CAFlag{"grpc-expander-url", address, nil}, CAFlag{"grpc-expander-cert", authority, nil})
	}
	return out
}

// YAML returns the value in YAML: text in quotes unless it is plain.
func (f CAFlag) YAML() string {
	if _, err := strconv.ParseBool(f.Value); err == nil {
		return f.Value
	}
	if _, err := strconv.Atoi(f.Value); err == nil {
		return f.Value
	}
	return strconv.Quote(f.Value)
}
