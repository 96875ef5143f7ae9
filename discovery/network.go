package discovery

import (
	"encoding/json"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// NetworkSpec describes an offer's network as administrators write it: its mode, and how the two gateways connect. All
// fields except Mode apply only to the mode gateway.
type NetworkSpec struct {
	// Mode is gateway (the default), existing or none. With gateway the network is created and removed with the peering.
	// With existing an administrator manages the network, and it is already connected.
	Mode fleet.NetworkMode `json:"mode,omitempty" validate:"omitempty,oneof=gateway existing none"`
	// ServerLocation selects the cluster whose gateway accepts the connection of the other gateway: provider (default) or
	// consumer.
	ServerLocation string `json:"serverLocation,omitempty" validate:"omitempty,oneof=provider consumer"`
	// ServiceType selects how the server's gateway is exposed. Default LoadBalancer.
	ServiceType string `json:"serviceType,omitempty" validate:"omitempty,oneof=LoadBalancer NodePort ClusterIP"`
	// ServicePort is the UDP port of the gateway's Service; absent means 51840.
	ServicePort int `json:"servicePort,omitempty" validate:"gte=0,lte=65535"`
	// NodePort fixes the port for ServiceType NodePort.
	NodePort int `json:"nodePort,omitempty" validate:"gte=0,lte=65535"`
	// LoadBalancerIP requests an address for ServiceType LoadBalancer.
	LoadBalancerIP string `json:"loadBalancerIP,omitempty" validate:"omitempty,ipaddress"`
	// ClientAddress is the IP address or DNS name that the client gateway dials instead of the Service's address.
	ClientAddress string `json:"clientAddress,omitempty" validate:"omitempty,address"`
	// ClientPort is the port that the client gateway dials instead of the Service's port.
	ClientPort int `json:"clientPort,omitempty" validate:"gte=0,lte=65535"`
	// MTU is the MTU of the tunnel; absent means 1340.
	MTU int `json:"mtu,omitempty" validate:"omitempty,gte=576,lte=9000"`
}

// Addresses returns the addresses in the network, by field.
func (n *NetworkSpec) Addresses() map[string]string {
	named := map[string]string{}
	if n != nil && n.LoadBalancerIP != "" {
		named["network.loadBalancerIP"] = n.LoadBalancerIP
	}
	if n != nil && n.ClientAddress != "" {
		named["network.clientAddress"] = n.ClientAddress
	}
	return named
}

// check returns the faults that struct tags cannot find; at is the prefix of the paths.
func (n *NetworkSpec) check(at string) (faults strictyaml.Faults) {
	if n == nil {
		return nil
	}
	if n.Mode != "" && n.Mode != fleet.NetworkGateway && *n != (NetworkSpec{Mode: n.Mode}) {
		faults.Add(at+"network", "mode %s creates no gateway: remove all fields except mode, or set mode: gateway", n.Mode)
	}
	if n.NodePort != 0 && n.ServiceType != "NodePort" {
		faults.Add(at+"network.nodePort", "is for serviceType: NodePort only")
	}
	if n.LoadBalancerIP != "" && n.ServiceType != "" && n.ServiceType != "LoadBalancer" {
		faults.Add(at+"network.loadBalancerIP", "is for serviceType: LoadBalancer only")
	}
	return faults
}

// network returns the network as package fleet represents it, including the options of the virtual kubelets. It returns
// nil when the offer sets neither.
func (s Spec) network() *fleet.Network {
	options := struct {
		NetworkSpec
		VirtualKubelet string `json:"virtualKubelet,omitempty"`
	}{VirtualKubelet: s.VirtualKubelet}
	if s.Network != nil {
		options.NetworkSpec = *s.Network
	} else if s.VirtualKubelet == "" {
		return nil
	}
	out := &fleet.Network{Mode: options.Mode}
	options.Mode = ""
	if options.NetworkSpec != (NetworkSpec{}) || options.VirtualKubelet != "" {
		out.Options, _ = json.Marshal(options) // strings and numbers can always be marshalled
	}
	return out
}

func isAddress(s string) bool {
	return isIP(s) || len(validation.IsDNS1123Subdomain(strings.ToLower(s))) == 0
}

func isIP(s string) bool {
	ip, err := netip.ParseAddr(s)
	return err == nil && ip.Zone() == ""
}
