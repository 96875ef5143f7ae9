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

// Config is what New needs. Consumer and Namespace are required.
type Config struct {
	// Consumer is the access to the cluster that lacks room.
	Consumer *rest.Config
	// Namespace is that of our ConfigMaps in the consumer; it exists.
	Namespace string
	// Hub tells installations on the same cluster apart; a label value. Default "default".
	Hub string
	// UnreachableAfter is how long a host may fail to answer in a row before Establish and Join give up. Default 10s.
	UnreachableAfter time.Duration
	// ForceAfter is how long after it was begun Return lets pods terminate by themselves. Default 5s.
	ForceAfter time.Duration
	// RefusedFor is how long a host that has removed its host group is left alone. Default 30m.
	RefusedFor time.Duration
	// Poll is how often Watch looks. Default 2s.
	Poll time.Duration
}

// Backend implements backend.Backend. It holds no state and may be used concurrently, also by
// several processes; two verbs for one provider's peering, or for one attempt, must not run at once.
type Backend struct {
	config Config
	local  client.Client // the consumer
}

var _ backend.Backend = (*Backend)(nil)

// New makes a Backend. It contacts nobody.
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
	if access.QPS == 0 { // the default of 5 requests per second is meant for people
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

// tag begins the tag of each machine of this hub of this cluster; the attempt's name ends it.
func (b *Backend) tag(ctx context.Context) (string, error) {
	var system corev1.Namespace
	if err := b.local.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return "", fmt.Errorf("read this cluster's id: %w", err)
	}
	return fmt.Sprintf("liqo-autoscaler.io/%s/%s/", system.UID, b.config.Hub), nil
}

// machines lists the machines on the host that are of the attempt of that object name, or with "" of any of ours.
func (b *Backend) machines(ctx context.Context, h *host, of string) ([]machine, error) {
	tag, err := b.tag(ctx)
	if err != nil {
		return nil, err
	}
	return h.machines(ctx, tag, of)
}
