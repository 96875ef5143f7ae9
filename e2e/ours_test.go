package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// clean returns an error for every object of ours in the clusters (invariant I9). In this lab only our processes
// create peerings. Therefore every object that Liqo calls a slice, a virtual node, a tenant, an identity or a part of
// a network must be gone, with or without labels. Every node except the plain node must be gone, too. Liqo's IPAM may
// contain only the cluster's own networks.
func clean(ctx context.Context, clusters ...*cluster) error {
	var found []error
	for _, c := range clusters {
		parts, err := peeringParts(ctx, c)
		if err != nil {
			return err
		}
		found = append(found, parts...)
		nodes, err := c.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, n := range nodes.Items {
			if n.Name != "plain-0" && n.Name != realNode {
				found = append(found, fmt.Errorf("%s: Node %s", c.name, n.Name))
			}
		}
		ours := metav1.ListOptions{LabelSelector: backend.LabelManagedBy + "=" + backend.ManagedBy}
		secrets, err := c.kube.CoreV1().Secrets(corev1.NamespaceAll).List(ctx, ours)
		if err != nil {
			return err
		}
		for _, s := range secrets.Items {
			found = append(found, fmt.Errorf("%s: Secret %s/%s", c.name, s.Namespace, s.Name))
		}
		namespaces, err := c.kube.CoreV1().Namespaces().List(ctx, ours)
		if err != nil {
			return err
		}
		for _, n := range namespaces.Items {
			found = append(found, fmt.Errorf("%s: Namespace %s %s", c.name, n.Name, n.Status.Phase))
		}
	}
	return errors.Join(found...)
}

// peeringParts returns an error for each part of a peering or a virtual node in a cluster.
func peeringParts(ctx context.Context, c *cluster) (found []error, err error) {
	for _, r := range []schema.GroupVersionResource{resourceSlices, virtualNodes, tenants, identities, configurations,
		gatewayServers, gatewayClients, publicKeys, connections, ipamNetworks} {
		items, err := c.list(ctx, r)
		if err != nil {
			return nil, err
		}
		for _, i := range items {
			if r == ipamNetworks && !strings.HasPrefix(i.GetNamespace(), "liqo-tenant-") {
				continue
			}
			state := "present"
			if i.GetDeletionTimestamp() != nil {
				state = fmt.Sprintf("terminating, finalizers %v", i.GetFinalizers())
			}
			found = append(found, fmt.Errorf("%s: %s %s/%s %s", c.name, i.GetKind(), i.GetNamespace(), i.GetName(), state))
		}
	}
	return found, nil
}
