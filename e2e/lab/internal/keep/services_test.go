package keep

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// TestServiceAddressesLeadToTheRunningGateway checks that each address of a gateway's Service leads to the running pod,
// for clusters whose wire is not cut.
func TestServiceAddressesLeadToTheRunningGateway(t *testing.T) {
	l := &lab{Config: Config{Root: t.TempDir()}}
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	services := cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace)
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace)
	k := &kubelet{cluster: &cluster{lab: l, name: "provider1", index: 1}, running: map[string]*containers{},
		services: listers.NewServiceLister(services), pods: listers.NewPodLister(pods)}
	l.kubelets = []*kubelet{k}
	selector := map[string]string{"app": "gw"}
	require.NoError(t, services.Add(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "gw-consumer"},
		Spec: corev1.ServiceSpec{ClusterIP: "10.91.0.7", Selector: selector, Ports: []corev1.ServicePort{
			{Protocol: corev1.ProtocolTCP, Port: 80, NodePort: 30080, TargetPort: intstr.FromInt32(80)},
			{Protocol: corev1.ProtocolUDP, Port: 51840, NodePort: 31000, TargetPort: intstr.FromInt32(51841)}}},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{
			Ingress: []corev1.LoadBalancerIngress{{IP: "172.30.1.2"}}}},
	}))
	for _, name := range []string{"starts", "runs", "other"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: name, Labels: selector}}
		if name == "other" {
			pod.Labels = nil
		}
		require.NoError(t, pods.Add(pod))
	}
	lead := func(from, at string) place { return l.serverAt(from, netip.MustParseAddrPort(at)) }
	require.Equal(t, place{nil, 0}, lead("consumer", "172.30.1.2:51840"), "no pod runs")

	gateway, other := &netns{}, &netns{}
	k.running["tenant/runs"] = &containers{sandbox: &sandbox{ns: gateway}}
	k.running["tenant/other"] = &containers{sandbox: &sandbox{ns: other}}
	for _, at := range []string{"172.30.1.2:51840", "10.91.0.7:51840", "192.168.201.1:31000"} {
		require.Equal(t, place{gateway, 51841}, lead("consumer", at), at)
	}
	for _, at := range []string{"172.30.1.2:51841", "172.30.1.2:31000", "192.168.201.1:51840", "192.168.200.1:31000",
		"203.0.113.9:51840", "10.91.0.7:80", "192.168.201.1:30080"} {
		require.Equal(t, place{}, lead("consumer", at), at)
	}

	cut := CutFile(l.Root, "provider1", "consumer")
	require.Equal(t, filepath.Join(l.Root, "network", "cut-consumer-provider1"), cut, "as the README says")
	require.NoError(t, os.MkdirAll(filepath.Dir(cut), 0o755))
	require.NoError(t, os.WriteFile(cut, nil, 0o600))
	require.Equal(t, place{}, lead("consumer", "172.30.1.2:51840"))
	require.Equal(t, place{gateway, 51841}, lead("provider2", "172.30.1.2:51840"), "another's wire is whole")
	require.NoError(t, os.Remove(cut))
	require.Equal(t, place{gateway, 51841}, lead("consumer", "172.30.1.2:51840"))
}

func TestEndpointOfAGatewayClientIsRead(t *testing.T) {
	pod := func(args ...string) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "gateway"},
			{Name: "wireguard", Args: append([]string{"--mode=client"}, args...)}}}}
	}
	at, ok := endpointOf(pod("--endpoint-address=172.30.1.2", "--endpoint-port=51840"))
	require.True(t, ok)
	require.Equal(t, netip.MustParseAddrPort("172.30.1.2:51840"), at)
	for _, args := range [][]string{nil, {"--endpoint-address=gw.example.org", "--endpoint-port=51840"},
		{"--endpoint-address=172.30.1.2"}} {
		_, ok := endpointOf(pod(args...))
		require.False(t, ok, args)
	}
	_, ok = endpointOf(&corev1.Pod{})
	require.False(t, ok)
}
