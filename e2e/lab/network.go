package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab/internal/keep"
)

// Cut interrupts the connection between the gateways of two clusters: no packet passes in either direction until
// Restore is called. The clusters' API servers can still be reached.
func (l *Lab) Cut(a, b string) error {
	if err := l.known(a, b); err != nil {
		return fmt.Errorf("cut wire: %w", err)
	}
	return touch(keep.CutFile(l.Root, a, b))
}

// Restore repairs the connection that Cut has interrupted.
func (l *Lab) Restore(a, b string) error {
	if err := l.known(a, b); err != nil {
		return fmt.Errorf("restore wire: %w", err)
	}
	return remove(keep.CutFile(l.Root, a, b))
}

// WithholdAddresses stops the assignment of addresses to Services of type LoadBalancer, as in a cluster without a
// controller that assigns addresses. ProvideAddresses starts it again. A new lab assigns addresses.
func (l *Lab) WithholdAddresses() error { return touch(keep.NoAddressFile(l.Root)) }

// ProvideAddresses makes the lab assign addresses to Services of type LoadBalancer again, including Services that
// wait for an address.
func (l *Lab) ProvideAddresses() error { return remove(keep.NoAddressFile(l.Root)) }

// KillGateway kills the processes of a cluster's gateway to another cluster, as a crash of the gateway's pod would.
// The lab restarts them after a second. To stop a gateway for longer, call Signal with SIGSTOP for the processes
// Gateway and WireGuard.
func (l *Lab) KillGateway(cluster, remote string) error {
	return errors.Join(l.Signal(cluster, Gateway(remote), syscall.SIGKILL),
		l.Signal(cluster, WireGuard(remote), syscall.SIGKILL))
}

// These constants are the values of the status of a Connection.
const (
	Connected       = "Connected"
	Connecting      = "Connecting"
	ConnectionError = "Error"
)

// Connection returns the status that a cluster's gateway has last written for its connection with another cluster.
// The status is one of the values above, or "" when the Connection or its status does not exist. When a gateway has
// died, its last status remains.
func (l *Lab) Connection(ctx context.Context, cluster, remote string) (string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig(cluster))
	if err != nil {
		return "", fmt.Errorf("read connection of %s with %s: %w", cluster, remote, err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("read connection of %s with %s: %w", cluster, remote, err)
	}
	connections := schema.GroupVersionResource{Group: "networking.liqo.io", Version: "v1beta1", Resource: "connections"}
	list, err := objects.Resource(connections).List(ctx, metav1.ListOptions{
		LabelSelector: "liqo.io/remote-cluster-id=" + remote})
	if err != nil {
		return "", fmt.Errorf("read connection of %s with %s: %w", cluster, remote, err)
	}
	if len(list.Items) == 0 {
		return "", nil
	}
	value, _, err := unstructured.NestedString(list.Items[0].Object, "status", "value")
	return value, err
}

// known returns an error if one of the names is not a cluster of the lab.
func (l *Lab) known(clusters ...string) error {
	have := append([]string{Consumer}, l.Providers...)
	for _, c := range clusters {
		if !slices.Contains(have, c) {
			return fmt.Errorf("no cluster %q in this lab, which has %v", c, have)
		}
	}
	return nil
}

func touch(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o644)
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
