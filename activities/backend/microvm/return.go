package microvm

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Drain evicts or deletes the pods on the attempt's Node.
func (b *Backend) Drain(ctx context.Context, a fleet.Attempt, force bool, progress backend.Progress) error {
	err := waiter{progress: progress}.until(ctx, backend.StageDrain, func(ctx context.Context) (bool, string, error) {
		return b.drainStep(ctx, a, force)
	})
	if err != nil {
		return fmt.Errorf("drain node %s: %w", a.ObjectName(), err)
	}
	return nil
}

func (b *Backend) drainStep(ctx context.Context, a fleet.Attempt, force bool) (bool, string, error) {
	record, err := b.attemptRecord(ctx, a)
	if err == nil {
		err = b.unmark(ctx, record)
	}
	if err != nil {
		return false, "", err
	}
	node, err := b.node(ctx, a)
	if err != nil || node == nil {
		return err == nil, "", err
	}
	if err := nodes.Cordon(ctx, b.local, node, force); err != nil {
		return false, "", err
	}
	return nodes.Empty(ctx, b.local, node.Name, force)
}

// Cordon cordons the attempt's Node, or removes a cordon that it has set itself.
func (b *Backend) Cordon(ctx context.Context, a fleet.Attempt, cordoned bool) error {
	node, err := b.node(ctx, a)
	if err != nil || node == nil {
		return err
	}
	before := node.DeepCopy()
	if !backend.SetCordon(node, cordoned) {
		return nil
	}
	return client.IgnoreNotFound(b.local.Patch(ctx, node, client.MergeFrom(before)))
}

// Return removes the Node and then the machine. The record is removed last, because it proves that a machine may exist.
func (b *Backend) Return(ctx context.Context, a fleet.Attempt, progress backend.Progress) error {
	started := backend.StartTime(ctx)
	err := backend.Through(ctx, waiter{progress: progress}.until, []backend.Step{
		{Stage: backend.StageDrain, Poll: func(ctx context.Context) (bool, string, error) {
			return b.drainStep(ctx, a, time.Since(started) > b.config.ForceAfter)
		}},
		{Stage: backend.StageNodeGone, Poll: func(ctx context.Context) (bool, string, error) {
			return b.nodeGoneStep(ctx, a)
		}},
		{Stage: backend.StageSliceGone, Poll: func(ctx context.Context) (bool, string, error) {
			return b.machineGone(ctx, a)
		}},
	})
	if err != nil {
		return fmt.Errorf("take back node %s of %s: %w", a.ObjectName(), a.Provider.ID, err)
	}
	return nil
}

// nodeGoneStep deletes the record and removes the Node. The record's finalizer keeps the record until machineGone
// removes the finalizer.
func (b *Backend) nodeGoneStep(ctx context.Context, a fleet.Attempt) (bool, string, error) {
	record, err := b.attemptRecord(ctx, a)
	if err == nil && record != nil && record.DeletionTimestamp == nil { // its finalizer keeps the terminating record
		err = nodes.DeleteThis(ctx, b.local, record)
	}
	if err != nil {
		return false, "", err
	}
	node, err := b.node(ctx, a)
	if err != nil || node == nil {
		return err == nil, "", err
	}
	return false, fmt.Sprintf("Node %s is being removed", node.Name), nodes.DeleteThis(ctx, b.local, node)
}

// machineGone removes the machine. Then it removes the Node once more, because a restarted kubelet registers it
// again. Finally it removes the record's finalizer.
func (b *Backend) machineGone(ctx context.Context, a fleet.Attempt) (bool, string, error) {
	record, err := b.attemptRecord(ctx, a)
	if err != nil || record == nil {
		return err == nil, "", err
	}
	h, _, err := b.known(ctx, a.Provider)
	if err != nil {
		return false, "", err
	}
	group, err := h.group(ctx, maxAnswer)
	if err != nil {
		return false, "", err
	}
	if group != nil { // if the group is gone, no machines exist
		machines, err := b.machines(ctx, h, a.ObjectName())
		if err != nil {
			return false, "", err
		}
		for _, m := range machines {
			if err := h.remove(ctx, m.Hostname); err != nil {
				return false, "", err
			}
		}
		if len(machines) > 0 {
			return false, fmt.Sprintf("machine %s is being removed", machines[0].Hostname), nil
		}
	}
	if done, message, err := b.nodeGoneStep(ctx, a); !done || err != nil {
		return false, message, err
	}
	err = nodes.MergePatch(ctx, b.local, record,
		map[string]any{"metadata": map[string]any{"finalizers": nil, "uid": record.UID}})
	return false, "its record is being removed", client.IgnoreNotFound(err)
}
