package discovery

import (
	"encoding/json"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// NetworkSpec describes an offer's network as administrators write it: the mode, and how the two gateways connect.
// All fields except Mode apply only if the mode is gateway.
type NetworkSpec struct {
	// Mode is gateway (the default), existing or none. With gateway, the network is created and removed together with
	// the peering. With existing, an administrator manages the network and has already connected it.
	Mode fleet.NetworkMode `json:"mode,omitempty" validate:"omitempty,oneof=gateway existing none"`
	// ServerLocation selects the cluster with the server gateway, to which the other gateway connects: provider
	// (default) or consumer.
	ServerLocation string `json:"serverLocation,omitempty" validate:"omitempty,oneof=provider consumer"`
	// ServiceType is the type of the Service that exposes the server gateway. Default LoadBalancer.
	ServiceType string `json:"serviceType,omitempty" validate:"omitempty,oneof=LoadBalancer NodePort ClusterIP"`
	// ServicePort is the UDP port of the gateway's Service; absent means 51840.
	ServicePort int `json:"servicePort,omitempty" validate:"gte=0,lte=65535"`
	// NodePort is the port to use if ServiceType is NodePort.
	NodePort int `json:"nodePort,omitempty" validate:"gte=0,lte=65535"`
	// LoadBalancerIP is the address to request if ServiceType is LoadBalancer.
	LoadBalancerIP string `json:"loadBalancerIP,omitempty" validate:"omitempty,ipaddress"`
	// ClientAddress is the IP address or DNS name to which the client gateway connects instead of the Service's
	// address.
	ClientAddress string `json:"clientAddress,omitempty" validate:"omitempty,address"`
	// ClientPort is the port to which the client gateway connects instead of the Service's port.
	ClientPort int `json:"clientPort,omitempty" validate:"gte=0,lte=65535"`
	// MTU is the MTU of the tunnel; absent means 1340.
	MTU int `json:"mtu,omitempty" validate:"omitempty,gte=576,lte=9000"`
}

// Addresses returns the addresses in the network, by the path of the field.
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

// check returns the faults that struct tags cannot find. The paths in the faults begin with `at`.
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

// network returns the network in the form of package fleet, including the options of the virtual kubelets. It returns
// nil if the offer sets neither Network nor VirtualKubelet.
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
