package microvm

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Config contains the settings of New. Consumer and Namespace are required.
type Config struct {
	// Consumer is the client configuration for the consumer, which is the cluster that CA scales.
	Consumer *rest.Config
	// Namespace is the namespace of our ConfigMaps on the consumer. It must exist.
	Namespace string
	// Hub distinguishes the installations on one cluster; it must be a label value. Default "default".
	Hub string
	// UnreachableAfter is the time for which a host may be silent without interruption before Establish and Join fail.
	// Default 10s.
	UnreachableAfter time.Duration
	// ForceAfter is the time after the start of Return during which pods may terminate on their own. Default 5s.
	ForceAfter time.Duration
	// RefusedFor is the time for which this backend does not use a host that has removed its host group. Default 30m.
	RefusedFor time.Duration
	// Poll is the interval between two lists of Watch. Default 2s.
	Poll time.Duration
}

// Backend implements backend.Backend. It has no state and is safe for concurrent use, even by several processes.
// Callers must not run two verbs for the same peering, or for the same attempt, concurrently.
type Backend struct {
	config Config
	local  client.Client // the consumer
}

var _ backend.Backend = (*Backend)(nil)

// New makes a Backend. It sends no request.
func New(config Config) (*Backend, error) {
	if config.Consumer == nil || config.Namespace == "" {
		return nil, fmt.Errorf("make microvm backend: it needs the consumer cluster and a namespace there: %w",
			backend.ErrInvalid)
	}
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, policyv1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, err
	}
	access := rest.CopyConfig(config.Consumer)
	access.Timeout = requestTimeout
	if access.QPS == 0 { // client-go's default of 5 requests per second suits interactive tools
		access.QPS, access.Burst = 50, 100
	}
	local, err := client.New(access, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make microvm backend: open consumer cluster: %w", err)
	}
	return newBackend(config, local), nil
}

func newBackend(config Config, local client.Client) *Backend {
	config.UnreachableAfter = cmp.Or(config.UnreachableAfter, 10*time.Second)
	config.ForceAfter = cmp.Or(config.ForceAfter, 5*time.Second)
	config.RefusedFor = cmp.Or(config.RefusedFor, 30*time.Minute)
	config.Poll = cmp.Or(config.Poll, 2*time.Second)
	config.Hub = cmp.Or(config.Hub, fleet.DefaultHub)
	return &Backend{config: config, local: local}
}

// tag returns the common prefix of the tags of this hub's machines for this cluster. A machine's tag is this prefix,
// followed by the attempt's name.
func (b *Backend) tag(ctx context.Context) (string, error) {
	var system corev1.Namespace
	if err := b.local.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return "", fmt.Errorf("read this cluster's id: %w", err)
	}
	return fmt.Sprintf("liqo-autoscaler.io/%s/%s/", system.UID, b.config.Hub), nil
}

// machines lists our machines on the host. The parameter of is the object name of an attempt: machines then lists
// only the machines of this attempt. If it is "", machines lists the machines of all attempts.
func (b *Backend) machines(ctx context.Context, h *host, of string) ([]machine, error) {
	tag, err := b.tag(ctx)
	if err != nil {
		return nil, err
	}
	return h.machines(ctx, tag, of)
}
