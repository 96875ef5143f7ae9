// Package secrets is the Source of offers that are kept as labelled Secrets in the consumer cluster, one per provider,
// in the format of this product's prototype:
//
//	apiVersion: v1
//	kind: Secret
//	metadata:
//	  name: milan                    # the offer's name
//	  labels: {autoscaling: "true"}
//	stringData:
//	  kubeconfig: ...                # access to the provider
//	  info: |                        # YAML or JSON
//	    resources: {cpu: "16", memory: 64Gi, pods: "110", nvidia.com/gpu: "0"}
//	    labels: {country: it, provider: example, city: milan, hasGPU: "false"}
//	    hasNat: false
//
// info may also contain maxNodes, price, prices, currency, latencyMilliseconds, lingerSeconds, unpeer, class,
// network, expires and provider, as in the offers file. Unknown keys are refused. hasNat becomes the label hasNat, so
// that the selectors of groups can use it. If resources has no entry for ephemeral-storage, the offer does not limit
// ephemeral storage. The prototype's format has no such entry. choice.Choose and the holds treat a missing entry for
// ephemeral-storage as unlimited.
//
// The source watches the Secrets, and starts a new watch when one ends. While it cannot list or watch, the last known
// offers stay in use, and every List reports this in a Problem. This package does not store kubeconfigs: an offer
// only refers to its Secret. Therefore a new kubeconfig in the Secret is used without a restart.
package secrets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Label is the label of the Secrets that the source reads.
var Label = labels.Set{"autoscaling": "true"}

// Options configures New.
type Options struct {
	// Namespace is the namespace of the Secrets. It is required, so that the process needs the permission to read
	// Secrets in this namespace only.
	Namespace string
	// SyncWait bounds the time for which List waits until the Secrets have been listed once. Default 10s.
	SyncWait time.Duration
}

// Source watches the Secrets. List returns offers only while Run runs.
type Source struct {
	options  Options
	store    cache.Store
	informer cache.Controller
	synced   chan struct{} // closed after the first list

	mu     sync.Mutex
	broken error // error of the last list or watch; nil after a success
	since  time.Time
}

// New returns a Source that has not started yet. The Source needs the permissions to list and watch Secrets in the
// namespace.
func New(client kubernetes.Interface, options Options) (*Source, error) {
	if options.Namespace == "" {
		return nil, errors.New("watch offer secrets: the namespace is missing")
	}
	options.SyncWait = cmp.Or(options.SyncWait, 10*time.Second)
	s := &Source{options: options, synced: make(chan struct{})}
	secrets := client.CoreV1().Secrets(options.Namespace)
	s.store, s.informer = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.LabelSelector = Label.String()
				list, err := secrets.List(ctx, o)
				s.note(err)
				return list, err
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.LabelSelector = Label.String()
				w, err := secrets.Watch(ctx, o)
				s.note(err)
				return w, err
			},
		},
		ObjectType: &corev1.Secret{},
		Handler:    cache.ResourceEventHandlerFuncs{},
		Transform:  strip,
	})
	return s, nil
}

// Run watches the Secrets until ctx ends. It must be called only once.
func (s *Source) Run(ctx context.Context) error {
	var both sync.WaitGroup
	both.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), s.informer.HasSynced) {
			close(s.synced)
		}
	})
	s.informer.RunWithContext(ctx)
	both.Wait()
	return nil
}

// Name implements discovery.Source.
func (s *Source) Name() string { return "secrets" }

// List implements discovery.Source. It returns an error only as long as the Secrets have never been listed.
func (s *Source) List(ctx context.Context) ([]fleet.Offer, []discovery.Problem, error) {
	wait, cancel := context.WithTimeout(ctx, s.options.SyncWait)
	defer cancel()
	select {
	case <-s.synced:
	case <-wait.Done():
		_, why := s.trouble()
		return nil, nil, fmt.Errorf("list secrets %s in namespace %s: not finished yet: %w",
			Label, s.options.Namespace, cmp.Or(why, context.Cause(wait)))
	}
	var offers []fleet.Offer
	var problems []discovery.Problem
	if since, why := s.trouble(); why != nil {
		problems = append(problems, discovery.Problem{Source: s.Name(), Message: fmt.Sprintf(
			"secrets in namespace %s cannot be watched since %s; the last known offers stay in use: %v",
			s.options.Namespace, since.UTC().Format(time.RFC3339), why)})
	}
	for _, item := range s.store.List() {
		r, ok := item.(*record)
		if !ok || !Label.AsSelector().Matches(labels.Set(r.Labels)) {
			continue
		}
		if r.err != nil {
			problems = append(problems, discovery.Problem{Source: s.Name(), Offer: r.Name, Message: r.err.Error()})
			continue
		}
		offers = append(offers, discovery.CopyOffer(r.offer))
	}
	slices.SortFunc(offers, func(a, b fleet.Offer) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(problems, func(a, b discovery.Problem) int { return cmp.Compare(a.Offer, b.Offer) })
	return offers, problems, nil
}

// Version returns a fingerprint of the kubeconfig in a watched Secret, for discovery.Options.SecretVersion. It
// returns "" for a Secret that is not watched.
func (s *Source) Version(_ context.Context, ref fleet.SecretRef) (string, error) {
	item, ok, err := s.store.GetByKey(ref.Namespace + "/" + ref.Name)
	if err != nil {
		return "", fmt.Errorf("get secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	r, isRecord := item.(*record)
	if !ok || !isRecord || cmp.Or(ref.Key, discovery.DefaultKey) != discovery.DefaultKey {
		return "", nil
	}
	return r.version, nil
}

func (s *Source) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.broken = nil
		return
	}
	if s.broken == nil {
		s.since = time.Now()
	}
	s.broken = err
}

func (s *Source) trouble() (since time.Time, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since, s.broken
}
