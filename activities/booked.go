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

// TypeUnconfirmed is the error type of a Join whose group does not confirm the instance. Such an error records no Event
// and does not count as a failure of the provider. The group stops the driver of an instance that is not booked.
const TypeUnconfirmed = "Unconfirmed"

// unconfirmedDelay is the delay before Join queries its group again.
const unconfirmedDelay = 2 * time.Second

// confirmBooked returns nil when the instance's group books the instance: the group publishes a row for it, and the
// group's history is not older than the observer's record. Join creates objects only after this confirmation. It is
// necessary after Temporal was restored from a backup: Temporal then resumes scale-outs whose instances CA has
// deleted since, and the id of such an instance must not be used again (I2). If the row is missing, confirmBooked
// sends the driver's view to the group, which answers with a stop. The result done is true when an earlier run of
// Join has already reported to the group that the instance is Ready, and the instance's Node is still Ready.
func (a *Activities) confirmBooked(ctx context.Context, in JoinInput) (done bool, err error) {
	at := in.Node.Attempt
	record, _, err := a.record(ctx, at.Group) // read before the group, so that the record cannot be newer
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
	// The row of a busy group is still in phase Pending: the group has not yet processed the view with the chosen
	// provider.
	if row >= 0 && (s.Instances[row].Phase == fleet.Pending || s.Instances[row].Phase.Growing()) {
		return false, nil
	}
	if row >= 0 && s.Instances[row].Phase == fleet.Ready && a.isNodeReady(ctx, at) {
		return true, nil
	}
	view := in.View
	view.Sequence-- // in.View's sequence number is reserved for the view Ready, which is sent later
	err = a.Messages.View(ctx, at.Group, view)
	return false, unconfirmed(errors.Join(fmt.Errorf("node group %s does not book instance %s", at.Group, at.Instance),
		err).Error())
}

func unconfirmed(text string) error {
	return temporal.NewApplicationErrorWithOptions(text, TypeUnconfirmed,
		temporal.ApplicationErrorOptions{NextRetryDelay: unconfirmedDelay})
}

// record returns the record that the observer has saved about a group. The result known is false when the observer
// has saved nothing.
func (a *Activities) record(ctx context.Context, group string) (r fleet.GroupRecord, known bool, err error) {
	if a.Records == nil {
		return r, false, nil
	}
	if r, known, err = a.Records.Group(ctx, group); err != nil {
		err = fmt.Errorf("read the record of node group %s: %w", group, err)
	}
	return r, known, err
}

// savePosition saves a group's position for a later record.
func (a *Activities) savePosition(ctx context.Context, group string, at fleet.Position) error {
	if a.Records == nil {
		return nil
	}
	return a.Records.Save(ctx, group, at)
}

// pausedBefore reports whether a group was paused when the observer last saved it. It returns nil when the observer has
// saved nothing.
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

// billBefore returns the last bill of a group that the observer saved, or nil when it has saved none.
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
