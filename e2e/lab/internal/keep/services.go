package keep

import (
	"context"
	"net/netip"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// The functions CutFile and NoAddressFile return paths of files in the lab's root that have an effect while they
// exist. Any process can create these files.

// CutFile returns the path of a file. While this file exists, no packet passes between the clusters a and b.
func CutFile(root, a, b string) string {
	return filepath.Join(root, "network", "cut-"+min(a, b)+"-"+max(a, b))
}

// NoAddressFile returns the path of a file. While this file exists, Services of type LoadBalancer get no address.
func NoAddressFile(root string) string {
	return filepath.Join(root, "network", "no-loadbalancer-address")
}

// balance gives each Service of type LoadBalancer an address, as a cloud's controller does.
func (k *kubelet) balance(ctx context.Context) {
	if exists(NoAddressFile(k.Root)) {
		return
	}
	services, _ := k.services.List(labels.Everything())
	for _, s := range services {
		if s.Spec.Type != corev1.ServiceTypeLoadBalancer || len(s.Status.LoadBalancer.Ingress) > 0 {
			continue
		}
		s = s.DeepCopy()
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: k.balancerIP(s)}}
		_, err := k.kube.CoreV1().Services(s.Namespace).UpdateStatus(ctx, s, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			k.log("give Service %s/%s of %s an address: %v", s.Namespace, s.Name, k.name, err)
		}
	}
}

// balancerIP returns the address that the Service requests. If the Service requests none, balancerIP returns the next
// address of a range.
func (k *kubelet) balancerIP(s *corev1.Service) string {
	if s.Spec.LoadBalancerIP != "" {
		return s.Spec.LoadBalancerIP
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lastBalancer++
	return netip.AddrFrom4([4]byte{172, 30, byte(k.index), byte(k.lastBalancer%250 + 1)}).String()
}

// serverAt returns the place of the gateway that receives packets from one cluster to an address. The place is zero
// (nowhere) if such a gateway does not exist, or if the connection to the gateway's cluster is cut (CutFile).
func (l *lab) serverAt(from string, at netip.AddrPort) place {
	l.mu.Lock()
	kubelets := slices.Clone(l.kubelets)
	l.mu.Unlock()
	for _, k := range kubelets {
		if p := k.behind(at); p.ns != nil && !exists(CutFile(l.Root, from, k.name)) {
			return p
		}
	}
	return place{}
}

// behind returns the place of the gateway pod to which kube-proxy or a load balancer would deliver packets for an
// address of a Service.
func (k *kubelet) behind(at netip.AddrPort) place {
	services, _ := k.services.List(labels.Everything())
	for _, s := range services {
		for _, port := range s.Spec.Ports {
			if port.Protocol == corev1.ProtocolUDP && k.addresses(s, port, at) {
				return place{k.gatewayOf(s), port.TargetPort.IntValue()}
			}
		}
	}
	return place{}
}

func (k *kubelet) addresses(s *corev1.Service, port corev1.ServicePort, at netip.AddrPort) bool {
	if at.Addr() == k.nodeIP() && port.NodePort == int32(at.Port()) {
		return true
	}
	ip := at.Addr().String()
	return port.Port == int32(at.Port()) && (s.Spec.ClusterIP == ip ||
		slices.ContainsFunc(s.Status.LoadBalancer.Ingress, func(i corev1.LoadBalancerIngress) bool { return i.IP == ip }))
}

// gatewayOf returns the network namespace of a gateway pod that the Service selects. It returns nil when no such pod
// runs.
func (k *kubelet) gatewayOf(s *corev1.Service) *netns {
	pods, _ := k.pods.Pods(s.Namespace).List(labels.SelectorFromSet(s.Spec.Selector))
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, pod := range pods {
		if ran := k.running[pod.Namespace+"/"+pod.Name]; ran != nil && ran.sandbox != nil {
			return ran.sandbox.ns
		}
	}
	return nil
}
