package liqo

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/liqotech/liqo/pkg/consts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	resourcehelper "k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// gatewayPods selects the pods of gateways in a tenant namespace.
var gatewayPods = client.MatchingLabels{"networking.liqo.io/component": "gateway"}

// sides returns the half with the gateway that listens, and the half with the gateway that connects to it. Existing
// gateways decide the direction, because the offer may have changed since the network was made. If no gateway exists,
// the offer decides.
func (n *network) sides() (server, client *half) {
	h, t := n.here.objects, n.there.objects
	switch {
	case t[kindServer] != nil || h[kindClient] != nil:
		return n.there, n.here
	case h[kindServer] != nil || t[kindClient] != nil, n.options.ServerLocation == atConsumer:
		return n.here, n.there
	default:
		return n.there, n.here
	}
}

// served reports done when the listening gateway runs and has an address.
func (n *network) served(ctx context.Context) (bool, string, error) {
	if err := n.fresh(ctx); err != nil {
		return false, "", err
	}
	h, _ := n.sides()
	server := h.objects[kindServer]
	if server == nil {
		return false, "the GatewayServer on " + h.where + " was made", h.make(ctx, kindServer, nil, nil, map[string]any{
			"mtu": n.options.MTU, "endpoint": n.options.endpoint(),
			"serverTemplateRef": h.template("WgGatewayServerTemplate", "wireguard-server"),
		})
	}
	if message := h.terminatingMessage(server); message != "" {
		return false, message, nil
	}
	if message, err := h.running(ctx, server); err != nil || message != "" {
		return false, message, err
	}
	if port, ports := portsOf(server); port == 0 && len(ports) == 0 {
		return false, fmt.Sprintf("the GatewayServer on %s has no port yet", h.where), nil
	}
	if len(texts(server, "status", "endpoint", "addresses")) == 0 {
		return false, fmt.Sprintf("Service gw-%s of the gateway on %s has no address yet: type %s", server.GetName(), h.where,
			text(server, "spec", "endpoint", "serviceType")), nil
	}
	return true, "", nil
}

// dialing reports done when the client's gateway runs, with the server's present address.
func (n *network) dialing(ctx context.Context) (bool, string, error) {
	if err := n.fresh(ctx); err != nil {
		return false, "", err
	}
	s, h := n.sides()
	endpoint, err := n.dialed(s.objects[kindServer])
	if err != nil {
		return false, "", err
	}
	dials := h.objects[kindClient]
	if h == n.here && n.options.ClientAddress == "" {
		if err := n.mayDial(ctx, dials, s.objects[kindServer]); err != nil {
			return false, "", err
		}
	}
	if dials == nil {
		set := maps.Clone(endpoint)
		maps.DeleteFunc(set, func(_ string, value any) bool { return value == nil })
		return false, "the GatewayClient on " + h.where + " was made", h.make(ctx, kindClient, nil, nil, map[string]any{
			"mtu": n.options.MTU, "endpoint": set,
			"clientTemplateRef": h.template("WgGatewayClientTemplate", "wireguard-client"),
		})
	}
	if message := h.terminatingMessage(dials); message != "" {
		return false, message, nil
	}
	if as, err := h.repair(ctx, dials, map[string]any{"endpoint": endpoint}); err != nil || !as {
		return false, "the GatewayClient on " + h.where + " was given the server's new address", err
	}
	message, err := h.running(ctx, dials)
	return err == nil && message == "", message, err
}

// dialed returns the endpoint to which the client connects: the server's own endpoint, or the endpoint in the offer. A
// field that the client must not have is nil.
func (n *network) dialed(server *unstructured.Unstructured) (map[string]any, error) {
	addresses := texts(server, "status", "endpoint", "addresses")
	if server == nil || len(addresses) == 0 {
		return nil, fmt.Errorf("the GatewayServer no longer has an address")
	}
	if n.options.ClientAddress != "" {
		addresses = []string{n.options.ClientAddress}
	}
	all := make([]any, len(addresses))
	for i := range addresses {
		all[i] = addresses[i]
	}
	endpoint := map[string]any{"addresses": all, "port": nil, "ports": nil,
		"protocol": cmp.Or(text(server, "status", "endpoint", "protocol"), string(corev1.ProtocolUDP))}
	switch port, ports := portsOf(server); {
	case n.options.ClientPort != 0 || port != 0:
		endpoint["port"] = cmp.Or(n.options.ClientPort, port)
	case len(ports) > 0:
		endpoint["ports"] = ports
	default:
		return nil, fmt.Errorf("the GatewayServer no longer has a port")
	}
	return endpoint, nil
}

// portsOf returns the port on which a GatewayServer listens. A version of Liqo after 1.2 may list several ports in
// another field; portsOf returns them in the result ports (Liqo apis/networking/v1beta1/gatewayserver_types.go,
// EndpointStatus).
func portsOf(server *unstructured.Unstructured) (port int64, ports []any) {
	port, _, _ = unstructured.NestedInt64(server.Object, "status", "endpoint", "port")
	ports, _, _ = unstructured.NestedSlice(server.Object, "status", "endpoint", "ports")
	return port, ports
}

// keysShared reports done when each cluster has the public key of the other cluster's gateway. It replaces rotated
// keys.
func (n *network) keysShared(ctx context.Context) (bool, string, error) {
	if err := n.fresh(ctx); err != nil {
		return false, "", err
	}
	s, c := n.sides()
	message, err := c.shareKey(ctx, kindClient, s, s.objects[kindServer])
	if err != nil {
		return false, "", err
	}
	also, err := s.shareKey(ctx, kindServer, c, c.objects[kindClient])
	message = cmp.Or(message, also)
	return err == nil && message == "", message, err
}

// shareKey makes the half's PublicKey from the key of the other half's gateway. The half's own gateway is the owner
// of the PublicKey. The result message is "" once the PublicKey exists.
func (h *half) shareKey(ctx context.Context, own string, other *half,
	gateway *unstructured.Unstructured) (message string, err error) {
	owner := h.objects[own]
	if gateway == nil || owner == nil {
		return "a gateway no longer exists", nil
	}
	secret := text(gateway, "status", "secretRef", "name")
	if secret == "" {
		return fmt.Sprintf("Liqo on %s has made no keys for its %s yet", other.where, gateway.GetKind()), nil
	}
	public, err := other.publicKey(ctx, secret)
	if err != nil || len(public) == 0 {
		return fmt.Sprintf("Secret %s/%s on %s has no public key yet", other.ns, secret, other.where), err
	}
	spec := map[string]any{"publicKey": base64.StdEncoding.EncodeToString(public)}
	key := h.objects[kindKey]
	if key == nil {
		return "the PublicKey on " + h.where + " was made", h.make(ctx, kindKey,
			map[string]string{consts.GatewayResourceLabel: consts.GatewayResourceLabelValue}, owner, spec)
	}
	if message := h.terminatingMessage(key); message != "" {
		return message, nil
	}
	if as, err := h.repair(ctx, key, spec); err != nil || !as {
		return "the PublicKey on " + h.where + " was replaced, because the other gateway has another one now", err
	}
	return "", nil
}

// publicKey reads a gateway's public key from the Secret that also contains the private key. It finds the Secret by
// label, so that permission to list Secrets in the namespace suffices.
func (h *half) publicKey(ctx context.Context, name string) (key []byte, err error) {
	err = h.do(ctx, "read the gateway's public key", func(cluster client.Client) error {
		var found corev1.SecretList
		err := cluster.List(ctx, &found, client.InNamespace(h.ns),
			client.MatchingLabels{consts.GatewayResourceLabel: consts.GatewayResourceLabelValue})
		for i := range found.Items {
			if found.Items[i].Name == name {
				key = found.Items[i].Data[consts.PublicKeyField]
			}
		}
		return err
	})
	return key, err
}

// connected reports done when both gateways report that they reach each other.
func (n *network) connected(ctx context.Context) (bool, string, error) {
	if err := n.fresh(ctx); err != nil {
		return false, "", err
	}
	for _, h := range []*half{n.here, n.there} {
		if !h.connected() {
			return false, n.here.describe() + "; " + n.there.describe(), nil
		}
	}
	return true, "", nil
}

// fresh reads both halves again. It returns ErrConflict when another owner has also made objects of the network.
func (n *network) fresh(ctx context.Context) error {
	if err := n.survey(ctx); err != nil {
		return err
	}
	for _, h := range []*half{n.here, n.there} {
		if h.foreign != "" {
			return errorf(backend.ErrConflict, "somebody else is making this network now: %s has appeared", h.foreign)
		}
	}
	return nil
}

// template returns a reference to the gateway template that Liqo's chart installs.
func (h *half) template(kind, name string) map[string]any {
	return map[string]any{"apiVersion": networking.String(), "kind": kind, "name": name, "namespace": h.liqo}
}

// gatewayName returns the name of the objects that Liqo makes for a gateway (Liqo pkg/gateway/forge).
func gatewayName(of string) string { return "gw-" + of }

// interval returns how often the half's gateway publishes a measurement of the connection. It returns 0 when this
// interval cannot be read.
func (h *half) interval(ctx context.Context) (every time.Duration, err error) {
	const flag = "--ping-update-status-interval="
	err = h.do(ctx, "look at the gateway", func(cluster client.Client) error {
		var deployment appsv1.Deployment
		err := cluster.Get(ctx, client.ObjectKey{Namespace: h.ns, Name: gatewayName(h.peer)}, &deployment)
		for _, container := range deployment.Spec.Template.Spec.Containers {
			for _, arg := range container.Args {
				if text, ok := strings.CutPrefix(arg, flag); ok {
					every, _ = time.ParseDuration(text)
				}
			}
		}
		if apierrors.IsForbidden(err) {
			return nil
		}
		return client.IgnoreNotFound(err)
	})
	return every, err
}

// running returns the reason why a gateway has no ready pod, or "" when it has a ready pod.
func (h *half) running(ctx context.Context, gateway client.Object) (message string, err error) {
	name := gatewayName(gateway.GetName())
	err = h.do(ctx, "look at the gateway", func(cluster client.Client) error {
		var deployment appsv1.Deployment
		err := cluster.Get(ctx, client.ObjectKey{Namespace: h.ns, Name: name}, &deployment)
		if client.IgnoreNotFound(err) != nil || err == nil && deployment.Status.ReadyReplicas > 0 {
			return client.IgnoreNotFound(err)
		}
		message = fmt.Sprintf("Deployment %s/%s of the gateway on %s has no ready pod yet", h.ns, name, h.where)
		return nil
	})
	if err == nil && message != "" && h.where == hereName {
		trouble, noRoom := h.p.gatewayTrouble(ctx)
		if message += trouble; noRoom {
			return "", errorf(backend.ErrNoRoom, "%s", message)
		}
	}
	return message, err
}

// gatewayTrouble returns the reason why this cluster's gateway pods do not run, or "". The result noRoom is true if
// the cluster has no free capacity for these pods, which is the most frequent reason.
func (p *peering) gatewayTrouble(ctx context.Context) (trouble string, noRoom bool) {
	var pods corev1.PodList
	if p.local.List(ctx, &pods, client.InNamespace(p.localNS), gatewayPods) != nil {
		return "", false
	}
	for i := range pods.Items {
		if lacks := noRoomFor(&pods.Items[i]); lacks != "" {
			return ": " + lacks, true
		}
		if found := podTrouble(&pods.Items[i]); found != "" {
			trouble = fmt.Sprintf(": pod %s: %s", pods.Items[i].Name, found)
		}
	}
	return trouble, false
}

// noRoomFor describes a pod that cannot be scheduled on this cluster: its requests, the scheduler's message and a
// remedy. It returns "" for any other pod.
func noRoomFor(pod *corev1.Pod) string {
	trouble := podTrouble(pod)
	if !strings.HasPrefix(trouble, corev1.PodReasonUnschedulable) {
		return ""
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	return fmt.Sprintf("%s: pod %s/%s, which requests cpu %s and memory %s: %s: reserve room for it here, or give it a "+
		"priority class", fleet.ConditionNoRoomForGateway, pod.Namespace, pod.Name, requests.Cpu(), requests.Memory(),
		trouble)
}

// noRoomHere describes a pod of a gateway or a virtual kubelet of the peering, if the pod cannot be scheduled on this
// cluster. It returns "" when all pods are scheduled.
func (p *peering) noRoomHere(ctx context.Context) (string, error) {
	var pods corev1.PodList
	if p.localNS == "" {
		return "", nil
	}
	if err := p.local.List(ctx, &pods, client.InNamespace(p.localNS)); err != nil {
		return "", fmt.Errorf("list the peering's pods here: %w", err)
	}
	for i := range pods.Items {
		if lacks := noRoomFor(&pods.Items[i]); lacks != "" {
			return shorten.Words(lacks, maxWords), nil
		}
	}
	return "", nil
}

// condition returns a condition's status, and whether the object has the condition.
func condition(object *unstructured.Unstructured, kind string) (status string, known bool) {
	all, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range all {
		if fields, ok := c.(map[string]any); ok && fields["type"] == kind {
			status, _ = fields["status"].(string)
			return status, true
		}
	}
	return "", false
}
