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

// Cut cuts the wire between two clusters' gateways: no packet passes, in either direction, until Restore. The clusters'
// API servers still reach each other.
func (l *Lab) Cut(a, b string) error {
	if err := l.known(a, b); err != nil {
		return fmt.Errorf("cut wire: %w", err)
	}
	return touch(keep.CutFile(l.Root, a, b))
}

// Restore repairs the wire that Cut has cut.
func (l *Lab) Restore(a, b string) error {
	if err := l.known(a, b); err != nil {
		return fmt.Errorf("restore wire: %w", err)
	}
	return remove(keep.CutFile(l.Root, a, b))
}

// WithholdAddresses keeps new Services of type LoadBalancer without an address, as where no controller assigns one,
// until ProvideAddresses. At first a lab provides addresses.
func (l *Lab) WithholdAddresses() error { return touch(keep.NoAddressFile(l.Root)) }

// ProvideAddresses gives Services of type LoadBalancer an address, including Services that wait for one.
func (l *Lab) ProvideAddresses() error { return remove(keep.NoAddressFile(l.Root)) }

// KillGateway kills the processes of a cluster's gateway to another cluster, like a crash of its pod; they are started
// again after a second. To keep a gateway away, stop it: Signal with SIGSTOP for Gateway and WireGuard.
func (l *Lab) KillGateway(cluster, remote string) error {
	return errors.Join(l.Signal(cluster, Gateway(remote), syscall.SIGKILL),
		l.Signal(cluster, WireGuard(remote), syscall.SIGKILL))
}

// Values of a Connection's status.
const (
	Connected       = "Connected"
	Connecting      = "Connecting"
	ConnectionError = "Error"
)

// Connection returns the status that a cluster's gateway has written last for its connection with another cluster: one
// of the values above, or "" without a status or without a Connection. A gateway that has died keeps its last status.
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

// known returns an error unless these are clusters of the lab.
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
