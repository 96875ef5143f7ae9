package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// TypeUnconfirmed is the error type of a Join whose group does not confirm the instance. It records no Event and does
// not count as a failure of the provider. The group stops the driver of an instance that it does not know.
const TypeUnconfirmed = "Unconfirmed"

// unconfirmedAgain is the delay before Join queries its group again.
const unconfirmedAgain = 2 * time.Second

// stillBooked returns no error when the instance's group books it. A restored backup resumes scale-outs whose instances
// CA has deleted since, and an instance id is never used twice (I2). So Join needs the group's confirmation before it
// creates objects: a published row of the instance, in a history that is not behind the observer's record. A group
// without such a row receives the driver's view, and answers it with a stop. done is true when an earlier run of Join
// has reported the instance as Ready to the group, and its Node still is Ready.
func (a *Activities) stillBooked(ctx context.Context, in JoinInput) (done bool, err error) {
	at := in.Node.Attempt
	record, _, err := a.record(ctx, at.Group) // read before the group, which then cannot seem to be behind
	if err != nil {
		return false, unconfirmed(err.Error())
	}
	s, err := a.Entities.Group(ctx, at.Group)
	if err != nil {
		return false, unconfirmed(fmt.Sprintf("node group %s cannot be read: %v", at.Group, err))
	}
	if s.Position().Behind(record.Position) {
		return false, unconfirmed(fmt.Sprintf("the history of node group %s was reverted; the next round of the observer "+
			"has it rebuilt", at.Group))
	}
	row := slices.IndexFunc(s.Instances, func(row fleet.InstanceView) bool {
		return row.Name == at.Instance && row.State != fleet.StateDeleting
	})
	// A busy group has a row in phase Pending: it has not yet read that a provider was chosen.
	if row >= 0 && (s.Instances[row].Phase == fleet.Pending || s.Instances[row].Phase.Growing()) {
		return false, nil
	}
	if row >= 0 && s.Instances[row].Phase == fleet.Ready && a.readyAfterAll(ctx, at) {
		return true, nil
	}
	view := in.View
	view.Sequence-- // in.View's sequence belongs to view Ready, which a group that books the instance again needs
	err = a.Messages.View(ctx, at.Group, view)
	return false, unconfirmed(errors.Join(fmt.Errorf("node group %s does not book instance %s", at.Group, at.Instance),
		err).Error())
}

func unconfirmed(text string) error {
	return temporal.NewApplicationErrorWithOptions(text, TypeUnconfirmed,
		temporal.ApplicationErrorOptions{NextRetryDelay: unconfirmedAgain})
}

// record returns the record that the observer has saved of a group; known is false when it has saved nothing.
func (a *Activities) record(ctx context.Context, group string) (r fleet.GroupRecord, known bool, err error) {
	if a.Records == nil {
		return r, false, nil
	}
	if r, known, err = a.Records.Group(ctx, group); err != nil {
		err = fmt.Errorf("read the record of node group %s: %w", group, err)
	}
	return r, known, err
}

// pausedBefore returns whether a group was paused when the observer last saved it; nil when that is not known.
func (a *Activities) pausedBefore(ctx context.Context, group string) *bool {
	r, known, err := a.record(ctx, group)
	if err != nil {
		activity.GetLogger(ctx).Warn("whether the node group was paused cannot be read; if it was, pause it again", "group",
			group, "error", err)
	}
	if !known {
		return nil
	}
	return &r.Paused
}

// billBefore returns the bill of a group that the observer saved last; nil when it is unknown.
func (a *Activities) billBefore(ctx context.Context, group string) *money.Bill {
	if a.Records == nil {
		return nil
	}
	b, known, err := a.Records.Bill(ctx, group)
	if err != nil {
		activity.GetLogger(ctx).Warn("what the node group had cost cannot be read; its sums begin with what its history has",
			"group", group, "error", err)
	}
	if !known {
		return nil
	}
	return &b
}

// cordonedBefore reports whether a provider was cordoned when the observer last saved it.
func (a *Activities) cordonedBefore(ctx context.Context, provider string) (bool, error) {
	if a.Records == nil {
		return false, nil
	}
	return a.Records.Cordoned(ctx, provider)
}
