package keep

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// These functions return the addresses of a cluster. Addresses of different clusters do not overlap, except addresses
// that Liqo chooses itself.
func (c *cluster) podCIDR() string     { return fmt.Sprintf("10.%d.0.0/16", 100+c.index) }
func (c *cluster) serviceCIDR() string { return fmt.Sprintf("10.%d.0.0/16", 90+c.index) }
func (c *cluster) nodeIP() netip.Addr {
	return netip.AddrFrom4([4]byte{192, 168, 200 + byte(c.index), 1})
}

// addresses returns the addresses for which the certificates of the API servers are valid in addition to loopback.
// Containers connect to an API server at one of two addresses: the address of a node that runs in a room (command
// lab/room), or the ClusterIP of the cluster's Service kubernetes. A test must listen at these addresses, and forward
// the connections.
func (c Config) addresses() []net.IP {
	all := []net.IP{net.IPv4(192, 168, 201, 2)}
	for index := range c.Clusters() {
		all = append(all, net.IPv4(10, 90+byte(index), 0, 1))
	}
	return all
}

// networkingValues returns the chart's values for networking. With them WireGuard runs in userspace, because the
// kernel may not support WireGuard.
func (c *cluster) networkingValues() map[string]any {
	return map[string]any{"enabled": !c.NoNetworking,
		"gatewayTemplates": map[string]any{"wireguard": map[string]any{"implementation": "userspace"}}}
}

// networking installs Liqo's networking module. The controllers of the module are not included, because they are in
// the controller manager.
func (c *cluster) networking(ctx context.Context, ch chart) error {
	if c.NoNetworking {
		return nil
	}
	// The controller manager exits when the Service of the proxy is missing.
	if err := c.apply(ctx, ch, "Service", "Network", "FirewallConfiguration", "WgGatewayServerTemplate",
		"WgGatewayClientTemplate"); err != nil {
		return err
	}
	args, err := ch.args("liqo-ipam", c.name, "--pod-name", "--port")
	if err != nil {
		return err
	}
	return c.startUntil(ctx, "ipam", c.liqo("ipam"), append(args, flags("--pod-name", "ipam", "--port",
		strconv.Itoa(c.ports.ipam))...), listens(c.ports.ipam))
}

// networksAssigned waits until Liqo has assigned addresses to the cluster's networks. Before that, Liqo refuses a
// request for a network.
func (c *cluster) networksAssigned(ctx context.Context) error {
	networks := schema.GroupVersionResource{Group: "ipam.liqo.io", Version: "v1alpha1", Resource: "networks"}
	var missing string
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			list, err := c.objects.Resource(networks).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, fmt.Errorf("list networks of %s: %w", c.name, err)
			}
			for _, n := range list.Items {
				if cidr, _, _ := unstructured.NestedString(n.Object, "status", "cidr"); cidr == "" {
					missing = n.GetName()
					return false, nil
				}
			}
			return true, nil
		})
	if err != nil {
		return fmt.Errorf("wait for networks of %s, %s has no addresses: %w", c.name, missing, err)
	}
	return nil
}

// listens returns a condition for proc.Process.Until: a process listens on the port.
func listens(port int) func(context.Context) error {
	return func(ctx context.Context) error {
		connection, err := (&net.Dialer{Timeout: probeTimeout}).DialContext(ctx, "tcp", loopback(port))
		if err != nil {
			return err
		}
		return connection.Close()
	}
}
