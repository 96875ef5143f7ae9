// Package keep contains the work of the keeper process, which runs a lab. The keeper starts the clusters, replaces
// their kubelets, and ends the whole lab when the lab's owner (the process that started the keeper) ends. All
// processes listen on loopback. Their ports depend on the slot and the cluster.
package keep

import (
	"fmt"
	"strconv"
	"time"
)

// Config describes the lab that the keeper runs. The owner sends the Config to the keeper as one line of JSON.
type Config struct {
	Root        string // folder of state, logs and kubeconfigs
	Bin         string // folder of the binaries, with the subfolders chart and liqo
	LiqoVersion string // version of Liqo, with which its chart is rendered
	Providers   int
	Slot        int // selects a separate block of ports

	NoNetworking bool // Liqo runs without its networking module
	Gateways     bool // Liqo's gateways run
	// PodStart is the time from the assignment of a pod to a node until the first process of the pod starts.
	PodStart time.Duration
}

// WireGuardGo is the name of a program, and of the folder of this program in Bin. Liqo before 1.2 runs the program by
// its path in the image.
const WireGuardGo = "wireguard-go"

// Consumer is the name and Liqo cluster id of the consumer cluster.
const Consumer = "consumer"

// Clusters returns the names of all clusters, the consumer first. The names are also the Liqo cluster ids.
func (c Config) Clusters() []string {
	out := []string{Consumer}
	for i := range c.Providers {
		out = append(out, "provider"+strconv.Itoa(i+1))
	}
	return out
}

// ports holds the ports of one cluster.
type ports struct {
	etcd, etcdPeer, api, kcm, scheduler int
	webhook                             int
	unusedWebhook                       int // liqo-controller-manager parses this port but serves nothing on it
	managerMetrics, managerProbe        int
	replicatorMetrics                   int
	webhookMetrics, webhookProbe        int
	ipam                                int
}

// block returns the first of the 400 ports of a slot. Each cluster has 20 of the first 200 ports, and the virtual
// kubelets have the other 200 ports. All ports of the ten slots are below Linux's ephemeral ports.
func (c Config) block() int { return 16000 + 400*c.Slot }

func (c Config) ports(cluster int) ports {
	p := c.block() + 20*cluster
	return ports{
		api: p, etcd: p + 1, etcdPeer: p + 2, kcm: p + 3, scheduler: p + 4,
		webhook: p + 5, unusedWebhook: p + 6,
		managerMetrics: p + 7, managerProbe: p + 8, replicatorMetrics: p + 9, webhookMetrics: p + 10, webhookProbe: p + 11,
		ipam: p + 12,
	}
}

// kubeletPorts returns the first and the last port that virtual kubelets may use, for all clusters together.
func (c Config) kubeletPorts() (first, last int) { return c.block() + 200, c.block() + 399 }

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// Said is one line of the keeper's output. Exactly one field is set.
type Said struct {
	Log   string `json:",omitempty"`
	Up    bool   `json:",omitempty"` // the whole lab answers
	Error string `json:",omitempty"` // the start or the end failed
}
