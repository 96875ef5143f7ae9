package client

import (
	"context"
	"slices"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// Messages delivers what activities and watchers tell the entities of a hub. Use one per process: see mailbox.
type Messages struct {
	base
	views *mailbox[fleet.View]
	facts *mailbox[fleet.Fact]
	holds *mailbox[fleet.HoldRequest]
}

// NewMessages makes the Messages of a hub; the task queue is named as Hub.TaskQueue has it.
func NewMessages(t Temporal, hub workflows.Hub, taskQueue string) *Messages {
	m := &Messages{base: newBase(t, hub, taskQueue)}
	m.views = newMailbox(mailPause, func(ctx context.Context, group string, rows []fleet.View) error {
		return m.signal(ctx, m.group(group), workflows.SignalViews, rows)
	})
	m.facts = newMailbox(mailPause, func(ctx context.Context, group string, rows []fleet.Fact) error {
		return m.signal(ctx, m.group(group), workflows.SignalFacts, rows)
	})
	m.holds = newMailbox(0, func(ctx context.Context, provider string, rows []fleet.HoldRequest) error {
		return m.signalProvider(ctx, provider, workflows.SignalHolds, rows)
	})
	return m
}

// View tells a group what one of its drivers sees. Errors: fleet.ErrNotRunning when nobody runs the group.
func (m *Messages) View(ctx context.Context, group string, v fleet.View) error {
	return m.views.put(ctx, group, v)
}

// Fact tells a group what somebody who watches nodes saw. One that only confirms is not sent: the view of the scale-out
// said so. What a watcher missed while it restarted, the observer reports. Errors:
// fleet.ErrNotRunning when nobody runs the group.
func (m *Messages) Fact(ctx context.Context, group string, f fleet.Fact) error {
	if f.Confirms {
		return nil
	}
	return m.facts.put(ctx, group, f)
}

// Holds asks a provider, whose entity it starts when that does not run.
func (m *Messages) Holds(ctx context.Context, provider string, requests ...fleet.HoldRequest) error {
	if trace := traceOf(ctx); trace != "" {
		requests = slices.Clone(requests)
		for n := range requests {
			if requests[n].Kind == fleet.HoldAcquire {
				requests[n].Trace = trace
			}
		}
	}
	return m.holds.put(ctx, provider, requests...)
}

// Report tells a provider how a run of its peering ended. Errors: fleet.ErrNotRunning.
func (m *Messages) Report(ctx context.Context, provider string, r fleet.PeeringReport) error {
	return m.signal(ctx, m.provider(provider), workflows.SignalReport, r)
}

// GroupDiffers tells a group what a round of the observer found. Errors: fleet.ErrNotRunning.
func (m *Messages) GroupDiffers(ctx context.Context, group string, d fleet.Differences) error {
	return m.signal(ctx, m.group(group), workflows.SignalDifferences, d)
}

// ProviderDiffers is the same for a provider.
func (m *Messages) ProviderDiffers(ctx context.Context, provider string, d fleet.Differences) error {
	return m.signal(ctx, m.provider(provider), workflows.SignalDifferences, d)
}
