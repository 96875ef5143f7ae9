package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
)

// These are Liqo's resources of a peering and of a virtual node, and the resource that offloads a namespace.
var (
	resourceSlices = schema.GroupVersionResource{Group: "authentication.liqo.io", Version: "v1beta1",
		Resource: "resourceslices"}
	tenants = schema.GroupVersionResource{Group: "authentication.liqo.io", Version: "v1beta1",
		Resource: "tenants"}
	identities = schema.GroupVersionResource{Group: "authentication.liqo.io", Version: "v1beta1",
		Resource: "identities"}
	configurations = schema.GroupVersionResource{Group: "networking.liqo.io", Version: "v1beta1",
		Resource: "configurations"}
	gatewayServers = schema.GroupVersionResource{Group: "networking.liqo.io", Version: "v1beta1",
		Resource: "gatewayservers"}
	gatewayClients = schema.GroupVersionResource{Group: "networking.liqo.io", Version: "v1beta1",
		Resource: "gatewayclients"}
	publicKeys = schema.GroupVersionResource{Group: "networking.liqo.io", Version: "v1beta1",
		Resource: "publickeies"}
	connections = schema.GroupVersionResource{Group: "networking.liqo.io", Version: "v1beta1",
		Resource: "connections"}
	ipamNetworks = schema.GroupVersionResource{Group: "ipam.liqo.io", Version: "v1alpha1",
		Resource: "networks"}
	virtualNodes = schema.GroupVersionResource{Group: "offloading.liqo.io", Version: "v1beta1",
		Resource: "virtualnodes"}
	namespaceOffloadings = schema.GroupVersionResource{Group: "offloading.liqo.io", Version: "v1beta1",
		Resource: "namespaceoffloadings"}
)

// cluster is one cluster of the lab.
type cluster struct {
	name string
	kube kubernetes.Interface
	liqo dynamic.Interface
}

func newCluster(t *testing.T, l *lab.Lab, name string) *cluster {
	t.Helper()
	config := restConfig(t, l.Kubeconfig(name))
	c := &cluster{name: name}
	var err error
	c.kube, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	c.liqo, err = dynamic.NewForConfig(config)
	require.NoError(t, err)
	return c
}

func restConfig(t *testing.T, kubeconfig string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	config.QPS, config.Burst = 50, 100
	return config
}

// list lists a resource in all namespaces.
func (c *cluster) list(ctx context.Context, r schema.GroupVersionResource) ([]unstructured.Unstructured, error) {
	l, err := c.liqo.Resource(r).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list %s of %s: %w", r.Resource, c.name, err)
	}
	return l.Items, nil
}

// count returns an error unless exactly n objects of a resource exist.
func (c *cluster) count(ctx context.Context, r schema.GroupVersionResource, n int) error {
	items, err := c.list(ctx, r)
	if err != nil {
		return err
	}
	if len(items) != n {
		names := make([]string, 0, len(items))
		for _, i := range items {
			names = append(names, i.GetName())
		}
		return fmt.Errorf("%s has %d %s %v, want %d", c.name, len(items), r.Resource, names, n)
	}
	return nil
}

// node returns the Node with this providerID, or an error if it is not Ready.
func (c *cluster) node(ctx context.Context, providerID string) (*corev1.Node, error) {
	nodes, err := c.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i, n := range nodes.Items {
		if n.Spec.ProviderID != providerID {
			continue
		}
		if isReady(&n) {
			return &nodes.Items[i], nil
		}
		return nil, fmt.Errorf("node %s is not Ready", n.Name)
	}
	return nil, fmt.Errorf("no node with providerID %s", providerID)
}

func isReady(n *corev1.Node) bool { return says(n, corev1.NodeReady, corev1.ConditionTrue) }

// networked reports whether a Node's condition shows that its network is connected.
func networked(n *corev1.Node) bool {
	return says(n, corev1.NodeNetworkUnavailable, corev1.ConditionFalse)
}

func says(n *corev1.Node, kind corev1.NodeConditionType, status corev1.ConditionStatus) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == kind && c.Status == status
	})
}
