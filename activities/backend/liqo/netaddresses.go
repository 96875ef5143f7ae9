package liqo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"slices"

	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// annotationNetworks is an annotation of our Configuration. Its value is the provider's addresses at the creation of
// the network.
const annotationNetworks = "liqo-autoscaler.io/pinned-networks"

// maxAddresses is the maximum number of addresses of one gateway.
const maxAddresses = 8

// used is an address range of this cluster, or of another provider.
type used struct {
	prefix netip.Prefix
	what   string // for messages
}

// unchanged returns an error when the provider's addresses differ from the addresses at the creation of the network:
// Liqo would add routes for the new addresses on every node of this cluster. A Configuration of an earlier build,
// without the annotation, is accepted.
func unchanged(configuration *unstructured.Unstructured, remote map[string]any) error {
	was, ok := configuration.GetAnnotations()[annotationNetworks]
	if now := networksOf(remote); ok && now != was {
		return errorf(backend.ErrInvalid,
			"AddressesChanged: the provider now has the networks %s, and had %s when its network "+
				"with this cluster was made: remove the peering, so that it is made anew with these", now, was)
	}
	return nil
}

// networksOf encodes the addresses for the annotation.
func networksOf(remote map[string]any) string {
	encoded, err := json.Marshal(remote)
	if err != nil { // it contains only strings and lists
		panic(err)
	}
	return string(encoded)
}

// separate returns an error when the provider's addresses, as this cluster sees them, overlap with addresses that are
// in use here. Liqo routes the provider's addresses on every node, before the main routing table. So an overlap would
// cut nodes off, or send their traffic to the provider. separate compares the addresses after Liqo has remapped them
// (Configuration.status.remote.cidr), because many clusters have the same default pod network. It sends requests to
// the API server and waits for the answers.
func (n *network) separate(ctx context.Context, configuration *unstructured.Unstructured) error {
	var remapped []netip.Prefix
	for _, kind := range []string{"pod", "external"} {
		for _, cidr := range texts(configuration, "status", "remote", "cidr", kind) {
			prefix, err := netip.ParsePrefix(cidr)
			if err != nil {
				return errorf(backend.ErrInvalid, "InvalidAddresses: Liqo sees the provider's %s network at %q, which is none",
					kind,
					cidr)
			}
			remapped = append(remapped, prefix)
		}
	}
	inUse, err := n.addressesInUse(ctx)
	if err != nil {
		return err
	}
	for _, prefix := range remapped {
		for _, u := range inUse {
			if prefix.Overlaps(u.prefix) {
				return errorf(backend.ErrInvalid, "AddressesOverlap: Liqo would route %s to the provider on every node of this "+
					"cluster, which overlaps with %s, %s. No gateway was made. Add %s to ipam.reservedSubnets of this cluster's "+
					"Liqo, so that it gives the provider other addresses, and remove the peering", prefix, u.prefix, u.what, u.prefix)
			}
		}
	}
	return nil
}

// mayDial checks the addresses that the provider has chosen, before our gateway connects to them. It returns an error
// if an address belongs to this cluster, or to the host of the gateway itself. It permits DNS names, because the
// gateway resolves them at each connection. mayDial reads the API server, unless the gateway already has these
// addresses.
func (n *network) mayDial(ctx context.Context, gateway, server *unstructured.Unstructured) error {
	addresses := texts(server, "status", "endpoint", "addresses")
	if gateway != nil && slices.Equal(addresses, texts(gateway, "spec", "endpoint", "addresses")) {
		return nil
	}
	inUse, err := n.addressesInUse(ctx)
	if err != nil {
		return err
	}
	const refused = "GatewayAddress: the provider's GatewayServer says that it is at %.80s, %s. This cluster's gateway " +
		"does not dial it. Correct the Service of that gateway, or write network.clientAddress into the offer"
	if len(addresses) > maxAddresses {
		return errorf(backend.ErrInvalid, refused, addresses[0], fmt.Sprintf("and at %d more addresses", len(addresses)-1))
	}
	for _, address := range addresses {
		ip, err := netip.ParseAddr(address)
		if err != nil {
			continue
		}
		if !ip.Unmap().IsGlobalUnicast() {
			return errorf(backend.ErrInvalid, refused, address, "which is no address of a host in a network")
		}
		for _, u := range inUse {
			if u.prefix.Contains(ip.Unmap()) {
				return errorf(backend.ErrInvalid, refused, address, "which lies in "+u.prefix.String()+", "+u.what)
			}
		}
	}
	return nil
}

// addressesInUse returns the addresses of this cluster's nodes, API server, pods and Services, and the addresses under
// which this cluster sees other providers.
func (n *network) addressesInUse(ctx context.Context) (all []used, err error) {
	err = n.here.do(ctx, "read the addresses in use", func(cluster client.Client) error {
		if all, err = addressesOfNodes(ctx, cluster); err != nil {
			return err
		}
		own, err := listOf(ctx, cluster, ipam.WithKind("Network"), client.InNamespace(n.here.liqo))
		if err != nil {
			return fmt.Errorf("list Networks: %w", err)
		}
		for i := range own {
			if kind := own[i].GetLabels()[consts.NetworkTypeLabelKey]; kind == string(consts.NetworkTypePodCIDR) ||
				kind == string(consts.NetworkTypeServiceCIDR) {
				all = append(all, rangeOf(text(&own[i], "status", "cidr"), "the "+kind+" of this cluster")...)
			}
		}
		configurations, err := listOf(ctx, cluster, networking.WithKind(kindConfiguration))
		if err != nil {
			return fmt.Errorf("list Configurations: %w", err)
		}
		for i := range configurations {
			peer := configurations[i].GetLabels()[consts.RemoteClusterID]
			if peer == n.here.peer {
				continue
			}
			for _, cidr := range texts(&configurations[i], "status", "remote", "cidr", "pod") {
				all = append(all, rangeOf(cidr, "the pods of cluster "+peer)...)
			}
		}
		return nil
	})
	if access := n.config.Consumer; access != nil {
		if server, wrong := url.Parse(access.Host); wrong == nil {
			all = append(all, hostOf(server.Hostname(), "this cluster's API server")...)
		}
	}
	return all, err
}

// addressesOfNodes returns the addresses of all nodes except virtual nodes.
func addressesOfNodes(ctx context.Context, cluster client.Client) (all []used, err error) {
	var found corev1.NodeList
	if err := cluster.List(ctx, &found); err != nil {
		return nil, fmt.Errorf("list Nodes: %w", err)
	}
	for i := range found.Items {
		if _, virtual := found.Items[i].Labels[consts.RemoteClusterID]; virtual {
			continue
		}
		for _, a := range found.Items[i].Status.Addresses {
			all = append(all, hostOf(a.Address, "an address of node "+found.Items[i].Name)...)
		}
	}
	return all, nil
}

// hostOf returns the range of one address. It returns nil for a DNS name.
func hostOf(address, what string) []used {
	if ip, err := netip.ParseAddr(address); err == nil {
		return []used{{netip.PrefixFrom(ip, ip.BitLen()), what}}
	}
	return nil
}

// rangeOf parses a range in CIDR notation. It returns nil for any other text.
func rangeOf(cidr, what string) []used {
	if prefix, err := netip.ParsePrefix(cidr); err == nil {
		return []used{{prefix, what}}
	}
	return nil
}
