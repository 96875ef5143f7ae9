// Package keep is the inside of a lab: what the keeper process does. It starts the clusters, stands in for their kubelets,
// and ends all of it when its owner goes. Everything listens on loopback on ports that follow from slot and cluster.
package keep

import (
	"fmt"
	"strconv"
)

// Config says which lab to keep. It travels as one line of JSON from the owner to the keeper.
type Config struct {
	Root        string // folder of state, logs and kubeconfigs
	Bin         string // folder of the binaries, with chart and liqo in it
	LiqoVersion string // what Liqo's chart is rendered for
	Providers   int
	Slot        int // shifts all ports by 200
}

// Consumer is the name and Liqo cluster id of the consumer cluster.
const Consumer = "consumer"

// Clusters are the names of all clusters, and their Liqo cluster ids: the consumer first.
func (c Config) Clusters() []string {
	out := []string{Consumer}
	for i := range c.Providers {
		out = append(out, "provider"+strconv.Itoa(i+1))
	}
	return out
}

// ports are those of one cluster.
type ports struct {
	etcd, etcdPeer, api, kcm, scheduler int
	webhook                             int
	unusedWebhook                       int // liqo-controller-manager parses one but serves nothing there
	managerMetrics, managerProbe        int
	replicatorMetrics                   int
	webhookMetrics, webhookProbe        int
}

func (c Config) ports(cluster int) ports {
	s, i := 200*c.Slot, cluster
	return ports{
		etcd: s + 2390 + 10*i, etcdPeer: s + 2391 + 10*i, api: s + 6441 + i,
		kcm: s + 10300 + 10*i, scheduler: s + 10301 + 10*i,
		webhook: s + 9500 + i, unusedWebhook: s + 9550 + i,
		managerMetrics: s + 8100 + 20*i, managerProbe: s + 8101 + 20*i, replicatorMetrics: s + 8102 + 20*i,
		webhookMetrics: s + 8104 + 20*i, webhookProbe: s + 8105 + 20*i,
	}
}

// kubeletPorts is the range virtual kubelets of all clusters listen in.
func (c Config) kubeletPorts() (first, last int) { return 200*c.Slot + 20251, 200*c.Slot + 20449 }

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// Said is one line of what the keeper says: exactly one field is set.
type Said struct {
	Log   string `json:",omitempty"`
	Up    bool   `json:",omitempty"` // all of the lab answers
	Error string `json:",omitempty"` // the start failed, or the end did
}
