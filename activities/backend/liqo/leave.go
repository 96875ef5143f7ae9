package liqo

import (
	"context"
	"errors"
	"fmt"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// Leave takes back what Join made: here first, then on the provider.
func (b *Backend) Leave(ctx context.Context, of backend.Attempt, progress backend.Progress) error {
	a := b.attempt(of)
	w := &waiter{progress: progress, stubborn: true}
	err := w.until(ctx, backend.StageDrain, a.emptied())
	if err == nil {
		err = w.until(ctx, backend.StageNodeGone, a.nodeGone())
	}
	if err == nil {
		err = w.until(ctx, backend.StageSliceGone, (&departure{attempt: a}).sliceGone)
	}
	if err != nil {
		return fmt.Errorf("take back node %s of %s: %w", of.ObjectName(), of.Provider.ID, err)
	}
	return nil
}

// emptied is done when no pod is left on the Node, those that do not go by themselves being deleted. Liqo's one worker
// drains virtual nodes in turn, waits for each one's pods without end and looks only every ten seconds (Liqo
// virtualnode-controller/{deletion-routine,drain}.go), so it must find none.
func (a *attempt) emptied() look {
	began := time.Now()
	return func(ctx context.Context) (bool, string, error) {
		if done, message, err := a.drained(ctx, time.Since(began) > a.config.ForceAfter); !done || err != nil {
			return false, message, err
		}
		return a.disown(ctx)
	}
}

// nodeGone deletes the virtual node and is done when it and its Node are gone.
func (a *attempt) nodeGone() look {
	var began, virtualGone time.Time
	return func(ctx context.Context) (bool, string, error) {
		if err := a.locate(ctx); err != nil {
			return false, "", err
		}
		virtual, err := a.virtualNode(ctx)
		if client.IgnoreNotFound(err) != nil {
			return false, "", err
		}
		if began.IsZero() {
			began = time.Now()
		}
		exists := err == nil
		node, err := a.node(ctx, virtual)
		if client.IgnoreNotFound(err) != nil {
			return false, "", err
		}
		registered := err == nil
		switch {
		case exists && !registered && virtual.DeletionTimestamp == nil && time.Since(began) < a.graces.register:
			return false, fmt.Sprintf("Node %s is about to be registered and waited for: Liqo fails when it comes in the midst of the removal", a.name()), nil
		case exists:
			virtualGone = time.Time{}
			return false, fmt.Sprintf("VirtualNode %s/%s is being removed", virtual.Namespace, virtual.Name), a.removeVirtualNode(ctx, virtual)
		case !registered:
			return true, "", nil
		}
		if virtualGone.IsZero() {
			virtualGone = time.Now()
		}
		if time.Since(virtualGone) > a.graces.node && node.DeletionTimestamp == nil {
			if err := deleteThis(ctx, a.local, node); err != nil {
				return false, "", fmt.Errorf("delete node: %w", err)
			}
		}
		return false, fmt.Sprintf("Node %s is still there", node.Name), nil
	}
}

// removeVirtualNode deletes the virtual node, and then what Liqo waits for: a pod that has come since it was emptied, and
// those of DaemonSets, which Liqo up to 1.1 evicts too and its virtual kubelet never lets go of.
func (a *attempt) removeVirtualNode(ctx context.Context, virtual *offloadingv1beta1.VirtualNode) error {
	if err := a.unmark(ctx, virtual); err != nil {
		return err
	}
	if virtual.DeletionTimestamp == nil {
		if err := deleteThis(ctx, a.local, virtual); err != nil {
			return fmt.Errorf("delete virtual node: %w", err)
		}
		return nil
	}
	pods, err := a.pods(ctx)
	for i := range pods {
		if staying(pods[i]) && pods[i].DeletionTimestamp == nil {
			continue
		}
		if _, kept := a.remove(ctx, &pods[i], true); kept != nil {
			err = errors.Join(err, fmt.Errorf("pod %s/%s: %w", pods[i].Namespace, pods[i].Name, kept))
			if unanswered(kept) {
				break
			}
		}
	}
	return err
}

// departure is what one Leave knows of its slice.
type departure struct {
	*attempt
	existed bool  // the slice was here when this Leave came to it
	held    since // it was seen terminating
	gone    since // it was found gone on both sides
}

// sliceGone deletes the slice and is done when it is gone here and, as far as it ever got there, on the provider.
func (d *departure) sliceGone(ctx context.Context) (bool, string, error) {
	if err := d.locate(ctx); err != nil {
		return false, "", err
	}
	slice, err := d.slice(ctx)
	if client.IgnoreNotFound(err) != nil {
		return false, "", err
	}
	if err != nil {
		return d.goneThere(ctx)
	}
	d.existed = true
	if slice.DeletionTimestamp == nil {
		if err := deleteThis(ctx, d.local, slice); err != nil {
			return false, "", fmt.Errorf("delete slice: %w", err)
		}
	}
	if d.held.longerThan(d.graces.release) {
		if err := d.releaseSlice(ctx, slice); err != nil {
			return false, "", err
		}
	}
	message := fmt.Sprintf("crd-replicator has not let go of ResourceSlice %s/%s yet", slice.Namespace, slice.Name)
	if _, status, err := d.apiServerStatus(ctx); err == nil {
		message += "; " + status
	}
	return false, message, nil
}

// releaseSlice helps when the provider has taken our Tenant away: what it still has of the slice is removed over our own
// credentials, and then the slice is let go.
func (d *departure) releaseSlice(ctx context.Context, slice *authv1beta1.ResourceSlice) error {
	if err := d.reach(ctx); err != nil {
		return err
	}
	if revoked, err := d.revoked(ctx); err != nil || !revoked {
		return err
	}
	if gone, _, err := d.askOverCredentials(ctx); err != nil || !gone {
		return err
	}
	return d.release(ctx, slice)
}

// goneThere is sliceGone on the provider. Without a peering there is nothing to look for, for a peering is only removed
// once the provider has no slice of ours; so an attempt that never came to a slice can be taken back when its provider is
// gone for good.
func (d *departure) goneThere(ctx context.Context) (bool, string, error) {
	secrets, err := d.controlPlaneSecrets(ctx)
	if err != nil || len(secrets) == 0 && !d.existed {
		return err == nil, "", err
	}
	gone, message, err := d.remoteSliceGone(ctx, secrets)
	if !gone || err != nil {
		return gone, message, err
	}
	err = d.certificateGone(ctx)
	if errors.Is(err, backend.ErrUnreachable) && !d.gone.longerThan(d.graces.certificate) {
		return false, "", err
	}
	return true, "", nil // what the provider keeps of a certificate does no harm
}
