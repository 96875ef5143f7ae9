package client

import (
	"context"
	"slices"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// Messages sends the messages of activities and watchers to the entities of a hub. Use one Messages per process,
// because it combines signals (see mailbox).
type Messages struct {
	base
	views *mailbox[fleet.View]
	facts *mailbox[fleet.Fact]
	holds *mailbox[fleet.HoldRequest]
}

// NewMessages returns the Messages of a hub. taskQueue is the argument of Hub.TaskQueue.
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

// View sends the view of a driver to its group. Error: fleet.ErrNotRunning when the group does not run.
func (m *Messages) View(ctx context.Context, group string, v fleet.View) error {
	return m.views.put(ctx, group, v)
}

// Fact sends a node watcher's fact to a group. It does not send a fact that only confirms a view, because the
// scale-out's view has reported it. The observer reports the facts that a watcher missed during a restart. Error:
// fleet.ErrNotRunning when the group does not run.
func (m *Messages) Fact(ctx context.Context, group string, f fleet.Fact) error {
	if f.Confirms {
		return nil
	}
	return m.facts.put(ctx, group, f)
}

// Holds sends requests to a provider, and starts its entity if it does not run.
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

// Report sends the result of a run of a provider's peering to the provider. Errors: fleet.ErrNotRunning.
func (m *Messages) Report(ctx context.Context, provider string, r fleet.PeeringReport) error {
	return m.signal(ctx, m.provider(provider), workflows.SignalReport, r)
}

// GroupDiffers sends the findings of an observer's round to a group. Errors: fleet.ErrNotRunning.
func (m *Messages) GroupDiffers(ctx context.Context, group string, d fleet.Differences) error {
	return m.signal(ctx, m.group(group), workflows.SignalDifferences, d)
}

// ProviderDiffers sends the findings of an observer's round to a provider. Errors: fleet.ErrNotRunning.
func (m *Messages) ProviderDiffers(ctx context.Context, provider string, d fleet.Differences) error {
	return m.signal(ctx, m.provider(provider), workflows.SignalDifferences, d)
}
