package discovery

import (
	"encoding/json"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// NetworkSpec is an offer's network as people write it: its mode, and how the two gateways find each other. All but the
// mode is for mode gateway only.
type NetworkSpec struct {
	// Mode is gateway (default: made and removed with the peering), existing (made by others, and connected) or none.
	Mode fleet.NetworkMode `json:"mode,omitempty" validate:"omitempty,oneof=gateway existing none"`
	// ServerLocation is which cluster's gateway the other one dials: provider (default) or consumer.
	ServerLocation string `json:"serverLocation,omitempty" validate:"omitempty,oneof=provider consumer"`
	// ServiceType is how that gateway is exposed. Default LoadBalancer.
	ServiceType string `json:"serviceType,omitempty" validate:"omitempty,oneof=LoadBalancer NodePort ClusterIP"`
	// ServicePort is its Service's UDP port; absent means 51840.
	ServicePort int `json:"servicePort,omitempty" validate:"gte=0,lte=65535"`
	// NodePort fixes the port of type NodePort.
	NodePort int `json:"nodePort,omitempty" validate:"gte=0,lte=65535"`
	// LoadBalancerIP asks for an address of type LoadBalancer.
	LoadBalancerIP string `json:"loadBalancerIP,omitempty" validate:"omitempty,ipaddress"`
	// ClientAddress is dialed instead of the address that the Service gets: an IP address or a DNS name.
	ClientAddress string `json:"clientAddress,omitempty" validate:"omitempty,address"`
	// ClientPort is dialed instead of the Service's port.
	ClientPort int `json:"clientPort,omitempty" validate:"gte=0,lte=65535"`
	// MTU is the tunnel's; absent means 1340.
	MTU int `json:"mtu,omitempty" validate:"omitempty,gte=576,lte=9000"`
}

// Addresses are those that the network names, by field.
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

// check returns what struct tags cannot find; at comes before the paths.
func (n *NetworkSpec) check(at string) (faults strictyaml.Faults) {
	if n == nil {
		return nil
	}
	if n.Mode != "" && n.Mode != fleet.NetworkGateway && *n != (NetworkSpec{Mode: n.Mode}) {
		faults.Add(at+"network", "mode %s makes no gateway: leave out all but the mode, or write mode: gateway", n.Mode)
	}
	if n.NodePort != 0 && n.ServiceType != "NodePort" {
		faults.Add(at+"network.nodePort", "is for serviceType: NodePort only")
	}
	if n.LoadBalancerIP != "" && n.ServiceType != "" && n.ServiceType != "LoadBalancer" {
		faults.Add(at+"network.loadBalancerIP", "is for serviceType: LoadBalancer only")
	}
	return faults
}

// network is the network as the domain carries it, with the virtual kubelets' options; nil when the offer says nothing
// of either.
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
		out.Options, _ = json.Marshal(options) // text and numbers can always be written
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
