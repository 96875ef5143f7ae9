package liqo

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// These are the defaults of `liqoctl network connect` (Liqo pkg/liqo-controller-manager/networking/forge).
const (
	defaultGatewayPort = 51840
	defaultMTU         = 1340

	atProvider = "provider"
	atConsumer = "consumer"
)

// netOptions is the decoded form of fleet.Network.Options. It describes how the two gateways find each other, and how
// the virtual kubelets of the nodes run. The gateways always use the templates that Liqo's chart installs.
type netOptions struct {
	ServerLocation string             `json:"serverLocation,omitempty"`
	ServiceType    corev1.ServiceType `json:"serviceType,omitempty"`
	ServicePort    int64              `json:"servicePort,omitempty"`
	NodePort       int64              `json:"nodePort,omitempty"`
	LoadBalancerIP string             `json:"loadBalancerIP,omitempty"`
	ClientAddress  string             `json:"clientAddress,omitempty"`
	ClientPort     int64              `json:"clientPort,omitempty"`
	MTU            int64              `json:"mtu,omitempty"`
	// VirtualKubelet names the VkOptionsTemplate of the nodes, in Liqo's namespace; standardOptions if it is empty.
	VirtualKubelet string `json:"virtualKubelet,omitempty"`
}

// readNetwork checks the network of an offer and fills in defaults. For an invalid network it returns ErrInvalid with a
// remedy.
func readNetwork(network *fleet.Network) (mode fleet.NetworkMode, o netOptions, err error) {
	mode = network.ModeOrDefault()
	if !slices.Contains([]fleet.NetworkMode{fleet.NetworkGateway, fleet.NetworkExisting, fleet.NetworkNone}, mode) {
		return mode, o, errorf(backend.ErrInvalid, "the offer's network.mode is %.40q: write gateway, existing or none", mode)
	}
	if network != nil && len(network.Options) > 0 {
		if len(network.Options) > fleet.MaxNetworkOptions {
			return mode, o, errorf(backend.ErrInvalid, "the offer's network has more than %d bytes", fleet.MaxNetworkOptions)
		}
		decoder := json.NewDecoder(bytes.NewReader(network.Options))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&o); err != nil {
			return mode, o, errorf(backend.ErrInvalid, "the offer's network cannot be read: %.200v", err)
		}
	}
	if wrong := o.wrong(); wrong != "" {
		return mode, o, errorf(backend.ErrInvalid, "the offer's network.%s", wrong)
	}
	o.ServerLocation = cmp.Or(o.ServerLocation, atProvider)
	o.ServiceType = cmp.Or(o.ServiceType, corev1.ServiceTypeLoadBalancer)
	o.ServicePort = cmp.Or(o.ServicePort, defaultGatewayPort)
	o.MTU = cmp.Or(o.MTU, defaultMTU)
	o.VirtualKubelet = cmp.Or(o.VirtualKubelet, standardOptions)
	return mode, o, nil
}

// wrong describes the first fault. The text begins with the name of the faulty field. It returns "" when the options
// are valid.
func (o netOptions) wrong() string {
	port := func(p int64) bool { return p >= 0 && p <= 65535 }
	types := []corev1.ServiceType{"", corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort,
		corev1.ServiceTypeClusterIP}
	for _, rule := range []struct {
		holds bool
		wrong string
	}{
		{slices.Contains([]string{"", atProvider, atConsumer}, o.ServerLocation),
			"serverLocation is neither provider nor consumer"},
		{slices.Contains(types, o.ServiceType), "serviceType is none of LoadBalancer, NodePort and ClusterIP"},
		{port(o.ServicePort), "servicePort is not a port"},
		{port(o.NodePort), "nodePort is not a port"},
		{port(o.ClientPort), "clientPort is not a port"},
		{o.NodePort == 0 || o.ServiceType == corev1.ServiceTypeNodePort, "nodePort is for serviceType: NodePort only"},
		{o.LoadBalancerIP == "" || isIP(o.LoadBalancerIP), "loadBalancerIP is not an IP address"},
		{o.LoadBalancerIP == "" || o.ServiceType == "" || o.ServiceType == corev1.ServiceTypeLoadBalancer,
			"loadBalancerIP is for serviceType: LoadBalancer only"},
		{isIP(o.ClientAddress) || isName(strings.ToLower(o.ClientAddress)),
			"clientAddress is neither an IP address nor a DNS name"},
		{isName(o.VirtualKubelet), "virtualKubelet is no name of a VkOptionsTemplate"},
		{o.MTU == 0 || o.MTU >= 576 && o.MTU <= 9000, "mtu is not between 576 and 9000"},
	} {
		if !rule.holds {
			return rule.wrong
		}
	}
	return ""
}

// isName reports whether s is empty or a DNS name.
func isName(s string) bool { return s == "" || len(validation.IsDNS1123Subdomain(s)) == 0 }

func isIP(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

// endpoint returns a GatewayServer's spec.endpoint.
func (o netOptions) endpoint() map[string]any {
	endpoint := map[string]any{"port": o.ServicePort, "serviceType": string(o.ServiceType)}
	if o.NodePort != 0 {
		endpoint["nodePort"] = o.NodePort
	}
	if o.LoadBalancerIP != "" {
		endpoint["loadBalancerIP"] = o.LoadBalancerIP
	}
	return endpoint
}
