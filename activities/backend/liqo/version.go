package liqo

import (
	"context"
	"fmt"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/liqoversion"
)

// compatible compares the Liqo versions of the two clusters of a new peering. The result warning describes a problem
// that does not prevent the peering. compatible returns ErrInvalid for a problem that only Config.AnyLiqo allows. It
// does not check a peering that already has its Identity.
func (p *peering) compatible(ctx context.Context) (warning string, err error) {
	if _, err := p.controlPlaneIdentity(ctx); !apierrors.IsNotFound(err) {
		return "", err
	}
	here, err := versionOf(ctx, p.local, p.self.namespace)
	if err != nil {
		return "", fmt.Errorf("read the version of this cluster's Liqo: %w", err)
	}
	var there string
	err = p.remote.do(ctx, "read the version of its Liqo", func(provider client.Client) (err error) {
		there, err = versionOf(ctx, provider, p.remote.namespace)
		return err
	})
	if err != nil {
		return "", err
	}
	problem, refused := liqoversion.Judge(here, there)
	if refused && !p.config.AnyLiqo {
		return "", errorf(backend.ErrInvalid, "%s (a worker with --any-liqo-version peers all the same)", problem)
	}
	return problem, nil
}

// versionOf returns the version of a cluster's Liqo, or "" when the version cannot be found or may not be read.
func versionOf(ctx context.Context, cluster client.Client, namespace string) (string, error) {
	var manager appsv1.Deployment
	err := cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: liqoversion.Deployment}, &manager)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return "", nil
	}
	return liqoversion.Of(&manager), err
}

// checkOnlySlice returns ErrFull when this cluster's version of Liqo loses pods of a provider with two nodes, and the
// provider already has another slice of this cluster, of any owner. Join calls it before it makes the slice. Join
// calls it again before it makes the virtual node, because another attempt may have checked at the same time. When
// both attempts have made their slices, each of these second calls finds the other slice. If this cluster's Liqo
// supports several nodes on a provider, Join does not repeat the call.
func (j *join) checkOnlySlice(ctx context.Context) error {
	if j.config.AnyLiqo {
		return nil
	}
	here, err := versionOf(ctx, j.local, j.self.namespace)
	if err != nil {
		return fmt.Errorf("read the version of this cluster's Liqo: %w", err)
	}
	if j.several = !liqoversion.OneNode(here); j.several {
		return nil
	}
	var slices authv1beta1.ResourceSliceList
	if err := j.local.List(ctx, &slices, outgoing(j.Provider.ID)); err != nil {
		return fmt.Errorf("list slices on %s: %w", j.Provider.ID, err)
	}
	for i := range slices.Items {
		if other := &slices.Items[i]; other.Name != j.name() {
			return errorf(backend.ErrFull, "provider %s has ResourceSlice %s/%s already, and with Liqo %s here a second node "+
				"there would lose the pods of the first (Liqo #3257): upgrade Liqo to 1.2, or set maxNodes: 1 on the offer",
				j.Provider.ID, other.Namespace, other.Name, here)
		}
	}
	return nil
}
