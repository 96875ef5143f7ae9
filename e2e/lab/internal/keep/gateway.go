package keep

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
)

// In a lab with gateways, two containers of a gateway pod run: wireguard and gateway are processes in the pod's own
// network namespace. The third container, geneve, does not run. It would connect the gateway to nodes, which do not
// exist here, and it needs features that the kernel may not have.
const (
	wireGuardContainer = "wireguard"
	gatewayContainer   = "gateway"
)

const gatewayNameLabel = "networking.liqo.io/gateway-name"

func isGateway(pod *corev1.Pod) bool { return pod.Labels["networking.liqo.io/component"] == "gateway" }

// sandbox holds the state that the containers of a gateway pod share.
type sandbox struct {
	ns   *netns
	keys string // folder of the mounted Secret
}

// newSandbox creates the pod's network namespace. From it, the pod can reach the API server of the cluster. If the
// pod is a client gateway, it can also reach the endpoint of its server gateway.
func (k *kubelet) newSandbox(ctx context.Context, pod *corev1.Pod) (_ *sandbox, err error) {
	ns, err := newNetns()
	if err != nil {
		return nil, err
	}
	s := &sandbox{ns: ns, keys: filepath.Join(k.tmp(), string(pod.UID))}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := ns.relayTCP(k.ports.api); err != nil {
		return nil, fmt.Errorf("relay API server into sandbox of %s: %w", pod.Name, err)
	}
	if err := k.mountKeys(ctx, pod, s.keys); err != nil {
		return nil, fmt.Errorf("mount keys of %s: %w", pod.Name, err)
	}
	endpoint, ok := endpointOf(pod)
	if !ok {
		return s, nil
	}
	if err := ns.own(endpoint.Addr()); err != nil {
		return nil, fmt.Errorf("lead endpoint of %s out of its sandbox: %w", pod.Name, err)
	}
	if err := ns.relayUDP(endpoint, func() place { return k.serverAt(k.name, endpoint) }); err != nil {
		return nil, fmt.Errorf("lead endpoint of %s out of its sandbox: %w", pod.Name, err)
	}
	return s, nil
}

func (s *sandbox) close() {
	s.ns.close()
	_ = os.RemoveAll(s.keys)
}

// endpointOf returns the address to which the WireGuard of a client gateway connects. It does not resolve a name,
// because the lab has no DNS.
func endpointOf(pod *corev1.Pod) (netip.AddrPort, bool) {
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == wireGuardContainer })
	if i < 0 {
		return netip.AddrPort{}, false
	}
	var address, port string
	for _, a := range pod.Spec.Containers[i].Args {
		if v, ok := strings.CutPrefix(a, "--endpoint-address="); ok {
			address = v
		}
		if v, ok := strings.CutPrefix(a, "--endpoint-port="); ok {
			port = v
		}
	}
	endpoint, err := netip.ParseAddrPort(address + ":" + port)
	return endpoint, err == nil && endpoint.Addr().Is4()
}

// mountKeys writes the Secret of the pod's volume as files into the folder dir.
func (k *kubelet) mountKeys(ctx context.Context, pod *corev1.Pod, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, v := range pod.Spec.Volumes {
		if v.Secret == nil {
			continue
		}
		secret, err := k.kube.CoreV1().Secrets(pod.Namespace).Get(ctx, v.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for name, value := range secret.Data {
			if err := os.WriteFile(filepath.Join(dir, name), value, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *kubelet) startGatewayContainer(pod *corev1.Pod, container *corev1.Container, s *sandbox,
	args, env []string) (*proc.Process, error) {
	overlay := ""
	if container.Name == wireGuardContainer {
		args = append(args, "--keys-dir="+s.keys)
		if dir := k.bin(WireGuardGo); exists(dir) {
			overlay = dir
		}
	}
	return k.startInside(s.ns, "gw-"+pod.Labels[gatewayNameLabel]+"-"+container.Name, overlay, k.liqo(container.Name),
		args, env)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
