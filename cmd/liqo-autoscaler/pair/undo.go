package pair

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/provider"
)

// undoBoth removes the offer and the access. It returns an error while the consumer still has nodes on the provider,
// or a peering between the two clusters exists.
func (r *run) undoBoth(ctx context.Context) error {
	consumer, here, err := r.openSide(ctx, "consumer", r.consumerContext)
	if err != nil {
		return err
	}
	providerCluster, there, err := r.openSide(ctx, "provider", r.providerContext)
	if err != nil {
		return err
	}
	if here.UID == there.UID || here.ID == there.ID {
		_, err := checkIdentities(here, there)
		return err
	}
	if err := consumer.unused(ctx, there.ID); err != nil {
		return err
	}
	if err := providerCluster.unused(ctx, here.ID); err != nil {
		return err
	}
	if err := r.removeOffers(ctx, consumer, there.ID); err != nil {
		return err
	}
	return r.removeAccess(ctx, providerCluster, there, here.ID)
}

// undoConsumer removes the offer of a provider from the consumer cluster.
func (r *run) undoConsumer(ctx context.Context) error {
	c, _, err := r.openSide(ctx, "consumer", r.consumerContext)
	if err != nil {
		return err
	}
	return r.removeOffers(ctx, c, r.providerID)
}

// undoProvider removes the access of a consumer from the provider's cluster.
func (r *run) undoProvider(ctx context.Context) error {
	c, id, err := r.openSide(ctx, "provider", r.providerContext)
	if err != nil {
		return err
	}
	return r.removeAccess(ctx, c, id, r.consumerID)
}

// removeOffers removes the Secrets whose labelSetup names the provider. It keeps the namespace and the values files.
func (r *run) removeOffers(ctx context.Context, c *cluster, provider string) error {
	if err := c.unused(ctx, provider); err != nil {
		return err
	}
	all := c.kube.CoreV1().Secrets(r.namespace)
	found, err := all.List(ctx, metav1.ListOptions{LabelSelector: labelSetup + "=" + provider})
	if err != nil {
		return fmt.Errorf("%s: list Secrets in namespace %s: %w", c, r.namespace, err)
	}
	for i := range found.Items {
		s := &found.Items[i]
		if !r.dryRun {
			err := all.Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: preconditions(s.UID)})
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s: delete Secret %s/%s: %w", c, r.namespace, s.Name, err)
			}
		}
		fmt.Fprintf(r.out, "Secret %s/%s: %s\n", r.namespace, s.Name, r.removed())
	}
	if len(found.Items) == 0 {
		fmt.Fprintf(r.out, "offer of %s: namespace %s has no Secret with the label of setup for it\n", provider, r.namespace)
	}
	fmt.Fprintf(r.out, "namespace %s and the values files were not removed\n", r.namespace)
	return nil
}

// removeAccess removes the objects whose labelSetup names the consumer.
func (r *run) removeAccess(ctx context.Context, c *cluster, id identity, consumer string) error {
	if err := c.unused(ctx, consumer); err != nil {
		return err
	}
	objects, err := parse(provider.Manifest(consumer, id.liqoNamespace, provider.PodPolicies), c.objects)
	if err != nil {
		return err
	}
	if err := read(ctx, objects); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	n, err := remove(ctx, objects, consumer, r.dryRun)
	if err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	fmt.Fprintf(r.out, "access of %s to %s: %d objects %s; namespace liqo-autoscaler stays\n", consumer, id.ID, n,
		r.removed())
	return nil
}

func (r *run) removed() string {
	if r.dryRun {
		return "would be removed"
	}
	return "removed"
}
