package liqo

import (
	"cmp"
	"context"
	"fmt"

	"github.com/liqotech/liqo/pkg/consts"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// network makes the network of one peering. It makes the objects that `liqoctl network connect` makes, in the same
// order.
type network struct {
	*peering
	mode        fleet.NetworkMode
	options     netOptions
	held        bool // nodes of ours were made with a network
	here, there *half
}

// connect makes the network that the peering's offer requests. The parameter foreign is true if the peering belongs
// to another owner. connect uses a connected network of another owner, and never changes or completes such a network.
// A working network may also serve other peerings. A broken network may be repaired only by its owner.
func (p *peering) connect(ctx context.Context, w *waiter, foreign bool) error {
	n := &network{peering: p}
	var err error
	if n.mode, n.options, err = readNetwork(p.provider.Network); err != nil {
		return stageError(backend.StageNetworkConfig, pollResultOf("", err))
	}
	settled := false
	err = w.until(ctx, backend.StageNetworkConfig, func(ctx context.Context) (bool, string, error) {
		var err error
		settled, err = n.settled(ctx, foreign)
		return err == nil, "", err
	})
	if err != nil || settled {
		return err
	}
	return backend.Through(ctx, w.until, []backend.Step{
		{Stage: backend.StageNetworkConfig, Poll: n.configured},
		{Stage: backend.StageGatewayServer, Poll: n.served},
		{Stage: backend.StageGatewayClient, Poll: n.dialing},
		{Stage: backend.StageGatewayKeys, Poll: n.keysShared},
		{Stage: backend.StageConnection, Poll: n.connected},
	})
}

// settled reports whether the network needs no work: it is connected, the peering needs none, or the existing nodes
// were made without a network. It returns an error for a network that is not connected and that we may not change.
func (n *network) settled(ctx context.Context, foreign bool) (bool, error) {
	if needless, err := n.needless(ctx); err != nil || needless {
		return err == nil, err
	}
	if err := n.survey(ctx); err != nil {
		return false, err
	}
	ours, foreignObject := n.here.owns() || n.there.owns(), cmp.Or(n.here.foreign, n.there.foreign)
	if n.here.connected() && n.there.connected() && (ours || foreignObject != "") {
		return true, nil
	}
	if err := n.foreignNetworkError(ours, foreignObject, foreign); err != nil || ours {
		return false, err
	}
	return n.heldWithout(ctx)
}

// foreignNetworkError returns the error of a network that is not connected and that we may not change. It returns nil
// for any other network.
func (n *network) foreignNetworkError(ours bool, foreignObject string, foreign bool) error {
	switch {
	case foreignObject != "":
		return n.notConnected("the network was made by others (%s)", foreignObject)
	case n.mode == fleet.NetworkExisting && !(ours && n.held):
		return n.notConnected("the offer has network mode existing")
	case foreign:
		return n.notConnected("the peering was made by others, and has no network of theirs")
	}
	return nil
}

// survey reads both halves of the network.
func (n *network) survey(ctx context.Context) error {
	n.here, n.there = n.halves()
	if err := n.here.read(ctx); err != nil {
		return err
	}
	return n.there.read(ctx)
}

// notConnected returns the error of a network that is not connected and that we may not change.
func (n *network) notConnected(why string, args ...any) error {
	return errorf(backend.ErrConflict,
		"ForeignNetworkNotConnected: %s, and is not connected: %s; %s. Connect it by liqoctl "+
			"network connect, remove it by liqoctl network reset, or write network: {mode: none} in the offer",
		fmt.Sprintf(why, args...), n.here.describe(), n.there.describe())
}

// configured reports done when each cluster has the addresses under which it sees the other cluster. It makes our own
// tenant namespace first, and then our Configuration: after a crash at any point, the consumer still has a record of
// the provider.
func (n *network) configured(ctx context.Context) (bool, string, error) {
	if message, err := n.namespaces(ctx); err != nil || message != "" {
		return false, message, err
	}
	if err := n.survey(ctx); err != nil {
		return false, "", err
	}
	ours, err := n.here.addresses(ctx)
	if err != nil {
		return false, "", err
	}
	theirs, err := n.there.addresses(ctx)
	if err != nil {
		return false, "", err
	}
	own := n.here.objects[kindConfiguration]
	if own != nil {
		if err := unchanged(own, theirs); err != nil {
			return false, "", err
		}
	}
	ready, message, err := n.here.configure(ctx, theirs)
	if err != nil {
		return false, "", err
	}
	if ready {
		if err := n.separate(ctx, own); err != nil {
			return false, "", err
		}
	}
	alsoReady, also, err := n.there.configure(ctx, ours)
	return ready && alsoReady, cmp.Or(message, also), err
}

// namespaces makes the tenant namespaces. If a namespace is not ready, the result message is the reason.
func (n *network) namespaces(ctx context.Context) (message string, err error) {
	if message, err := n.ensureOwnNamespace(ctx); err != nil || message != "" {
		return message, err
	}
	err = n.remote.do(ctx, "find our tenant namespace", func(provider client.Client) (err error) {
		n.remoteNS, message, err = ensureTenantNamespace(ctx, provider, n.self.id, n.signed(), nil)
		return err
	})
	return message, err
}

// addresses returns the pod addresses and external addresses that Liqo's IPAM has assigned to the half's cluster.
// They are the content of the Configuration on the other cluster.
func (h *half) addresses(ctx context.Context) (cidr map[string]any, err error) {
	cidr = map[string]any{}
	none := true
	err = h.do(ctx, "read the addresses of Liqo's IPAM", func(cluster client.Client) error {
		for key, kind := range map[string]string{"pod": string(consts.NetworkTypePodCIDR),
			"external": string(consts.NetworkTypeExternalCIDR)} {
			found, err := listOf(ctx, cluster, ipam.WithKind("Network"), client.InNamespace(h.liqo),
				client.MatchingLabels{consts.NetworkTypeLabelKey: kind})
			if err != nil {
				return err
			}
			var all []any
			for i := range found {
				none = false
				if own := text(&found[i], "status", "cidr"); own != "" {
					all = append(all, own)
				}
			}
			if len(all) > 0 {
				cidr[key] = all
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case none:
		return nil, errorf(backend.ErrInvalid,
			"NetworkingNotInstalled: Liqo on %s has no networking module: install it there "+
				"(networking.enabled of Liqo's chart), or write network: {mode: none} in the offer", h.where)
	case cidr["pod"] == nil:
		return nil, fmt.Errorf("Liqo's IPAM on %s has given the pods' Network no addresses yet", h.where)
	}
	return cidr, nil
}

// configure makes the half's Configuration and reports ready when Liqo has mapped the other cluster's addresses.
func (h *half) configure(ctx context.Context, remote map[string]any) (ready bool, message string, err error) {
	spec := map[string]any{"remote": map[string]any{"cidr": remote}}
	configuration := h.objects[kindConfiguration]
	if configuration == nil {
		maker := *h
		if h.where == hereName {
			maker.annotations = with(h.annotations, map[string]string{annotationNetworks: networksOf(remote)})
		}
		return false, "the Configuration on " + h.where + " was made", maker.make(ctx, kindConfiguration, nil, nil, spec)
	}
	if message := h.terminatingMessage(configuration); message != "" {
		return false, message, nil
	}
	if as, err := h.repair(ctx, configuration, spec); err != nil || !as {
		return false, "the Configuration on " + h.where + " was brought up to date", err
	}
	status, known := condition(configuration, "NetworkCIDRsConfigured") // since Liqo 1.2
	if known && status == "True" || !known && len(texts(configuration, "status", "remote", "cidr", "pod")) > 0 {
		return true, "", nil
	}
	return false, fmt.Sprintf("Liqo on %s has not mapped the addresses of Configuration %s/%s yet", h.where,
		configuration.GetNamespace(), configuration.GetName()), nil
}

// terminatingMessage returns the message about an object that is being deleted, or "".
func (h *half) terminatingMessage(object client.Object) string {
	if object.GetDeletionTimestamp() == nil {
		return ""
	}
	return fmt.Sprintf("%s %s/%s of an earlier network is being removed on %s",
		object.GetObjectKind().GroupVersionKind().Kind, object.GetNamespace(), object.GetName(), h.where)
}
