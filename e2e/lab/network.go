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

// Cut cuts the wire between the gateways of two clusters: no packet passes in either direction until Restore. The
// clusters' API servers still reach each other.
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

// WithholdAddresses leaves new Services of type LoadBalancer without an address, as in a cluster without a controller
// that assigns addresses, until ProvideAddresses. A new lab provides addresses.
func (l *Lab) WithholdAddresses() error { return touch(keep.NoAddressFile(l.Root)) }

// ProvideAddresses assigns addresses to Services of type LoadBalancer, including Services that wait for one.
func (l *Lab) ProvideAddresses() error { return remove(keep.NoAddressFile(l.Root)) }

// KillGateway kills the processes of a cluster's gateway to another cluster, like a crash of its pod. The lab restarts
// them after a second. To keep a gateway away, send SIGSTOP with Signal to Gateway and WireGuard.
func (l *Lab) KillGateway(cluster, remote string) error {
	return errors.Join(l.Signal(cluster, Gateway(remote), syscall.SIGKILL),
		l.Signal(cluster, WireGuard(remote), syscall.SIGKILL))
}

// Values of the status of a Connection.
const (
	Connected       = "Connected"
	Connecting      = "Connecting"
	ConnectionError = "Error"
)

// Connection returns the status that a cluster's gateway has last written for its connection with another cluster. It
// is one of the values above, or "" when the Connection or its status does not exist. A gateway that has died keeps its
// last status.
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
