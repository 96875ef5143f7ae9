package liqo

import (
	"context"
	"fmt"

	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// identity contains a cluster's Liqo id and the namespace of its Liqo.
type identity struct {
	id        string
	namespace string
	uid       string // the UID of kube-system, which differs in a clone; set for the consumer only
}

// Identify reads the provider's cluster id with its credentials. It returns within two request timeouts plus
// graces.identify. A newly started API server may refuse every request during graces.identify.
func (b *Backend) Identify(ctx context.Context, credentials fleet.Credentials) (string, error) {
	provider, err := b.open(ctx, credentials)
	if err != nil {
		return "", fmt.Errorf("identify provider: %w", err)
	}
	var refusing stopwatch
	for {
		found, err := b.identify(withIdentityBound(ctx), provider)
		if err == nil {
			return found.id, nil
		}
		if !isUnauthorized(err) || refusing.longerThan(b.graces.identify) {
			return "", fmt.Errorf("identify provider: %w", invalidIfUnauthorized(err))
		}
		if !wait.For(ctx, longestPause/3) {
			return "", fmt.Errorf("identify provider: %w", invalidIfUnauthorized(err))
		}
	}
}

func isUnauthorized(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err)
}

// invalidIfUnauthorized converts an error as accessError does, but returns ErrInvalid for 401 and 403: on first use bad
// credentials are a configuration error.
func invalidIfUnauthorized(err error) error {
	if isUnauthorized(err) {
		return errorf(backend.ErrInvalid, "the provider answers, but the credentials may not read its cluster id: %v", err)
	}
	return accessError("read its cluster id", err)
}

// identify reads a cluster's id from the ConfigMap that Liqo's chart installs. It searches for the ConfigMap by
// label, in the usual namespace and then in all namespaces (Liqo pkg/utils/cluster_info.go).
func (b *Backend) identify(ctx context.Context, cluster client.Client) (identity, error) {
	byLabel := client.MatchingLabels{consts.K8sAppNameKey: consts.ClusterIDConfigMapNameLabelValue}
	var found corev1.ConfigMapList
	if err := cluster.List(ctx, &found, byLabel, client.InNamespace(b.config.LiqoNamespace)); err != nil {
		return identity{}, err
	}
	if len(found.Items) == 0 {
		if err := cluster.List(ctx, &found, byLabel); err != nil {
			return identity{}, err
		}
	}
	if len(found.Items) != 1 {
		return identity{}, errorf(backend.ErrInvalid,
			"found %d ConfigMaps labelled %s=%s where Liqo keeps its cluster id: is Liqo installed there?",
			len(found.Items), consts.K8sAppNameKey, consts.ClusterIDConfigMapNameLabelValue)
	}
	cm := found.Items[0]
	id := cm.Data[consts.ClusterIDConfigMapKey]
	if id == "" {
		return identity{}, errorf(backend.ErrInvalid, "ConfigMap %s/%s has no %s", cm.Namespace, cm.Name,
			consts.ClusterIDConfigMapKey)
	}
	if !fleet.ValidProviderID(id) {
		return identity{}, errorf(backend.ErrInvalid, "ConfigMap %s/%s has a %s that is no cluster id of Liqo's, a DNS-1123 "+
			"label: %.80q", cm.Namespace, cm.Name, consts.ClusterIDConfigMapKey, id)
	}
	return identity{id: id, namespace: cm.Namespace}, nil
}

// consumer returns this cluster's own identity, which cannot change while the process runs.
func (b *Backend) consumer(ctx context.Context) (identity, error) {
	if known := b.self.Load(); known != nil {
		return *known, nil
	}
	self, err := b.identify(ctx, b.local) // without a lock: no call waits for another call's request
	if err != nil {
		return identity{}, fmt.Errorf("read this cluster's Liqo id: %w", err)
	}
	if self.uid, err = clusterUID(ctx, b.local); err != nil {
		return identity{}, fmt.Errorf("read this cluster's UID: %w", err)
	}
	b.self.Store(&self)
	return self, nil
}

// Alive sends one request to the consumer's API server and returns an error when it fails.
func (b *Backend) Alive(ctx context.Context) error {
	if _, err := clusterUID(ctx, b.local); err != nil {
		return fmt.Errorf("ask this cluster's API server: %w", err)
	}
	return nil
}

// clusterUID returns the UID of the namespace kube-system. It finds the namespace by the label with the namespace's
// name, because the worker may list namespaces but not get them.
func clusterUID(ctx context.Context, cluster client.Client) (string, error) {
	var found corev1.NamespaceList
	err := cluster.List(ctx, &found, client.MatchingLabels{corev1.LabelMetadataName: metav1.NamespaceSystem})
	if err == nil && len(found.Items) != 1 {
		err = fmt.Errorf("found %d namespaces %s", len(found.Items), metav1.NamespaceSystem)
	}
	if err != nil {
		return "", err
	}
	return string(found.Items[0].UID), nil
}
