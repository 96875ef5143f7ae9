package workflows

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/driver"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/provider"
)

// describedRows bounds the number of rows that the Temporal UI shows. The command `status` shows all rows.
const describedRows = 200

// describeGroup returns the Markdown that the Temporal UI shows for a running node group.
func describeGroup(s fleet.Snapshot) string {
	var b strings.Builder
	b.WriteString(fmt.Sprintf("**%s**: target %d, min %d, max %d\n", s.Group, s.Target, s.Min, s.Max))
	if s.Paused {
		b.WriteString("\n**paused**: no instances are started\n")
	}
	if s.Notice.Name != "" {
		b.WriteString("\n**" + s.Notice.Name + "**: " + s.Notice.Message + "\n")
	}
	if s.Condition != "" {
		b.WriteString("\n**condition**: " + s.Condition + "\n")
	}
	if len(s.Instances) == 0 {
		return b.String()
	}
	b.WriteString("\n| instance | phase | provider | attempt | since | why |\n|---|---|---|---|---|---|\n")
	for _, i := range s.Instances[:min(len(s.Instances), describedRows)] {
		why := i.Stuck
		if i.Failure != nil {
			why = string(i.Failure.Code) + ": " + i.Failure.Message
		}
		b.WriteString(fmt.Sprintf("| %s | %s | %s | %d | %s | %s |\n", i.Name, i.Phase, i.Provider, i.Attempt,
			moment(i.Since), why))
	}
	return b.String()
}

// describeProvider returns the Markdown for a provider.
func describeProvider(p fleet.ProviderSnapshot) string {
	var b strings.Builder
	b.WriteString(fmt.Sprintf("peering with **%s**: %s since %s, %d holds\n", p.ID, p.Phase,
		moment(p.Since), len(p.Holds)))
	if !p.Cordoned.IsZero() {
		b.WriteString("\n**cordoned** by an operator: it gets no new nodes\n")
	}
	if p.Refusing != nil {
		b.WriteString(fmt.Sprintf("\nit refuses this cluster (%s): %s\n", p.Refusing.Kind, p.Refusing.Reason))
	}
	if p.Failure != nil {
		b.WriteString(fmt.Sprintf("\nlast failure: %s: %s\n", p.Failure.Code, p.Failure.Message))
	}
	for _, key := range p.Holds[:min(len(p.Holds), describedRows)] {
		state := fleet.HoldGranted
		if slices.Contains(p.Waiting, key) {
			state = fleet.HoldWaiting
		}
		b.WriteString(fmt.Sprintf("- %s: %s\n", key, state))
	}
	for _, key := range slices.Sorted(maps.Keys(p.Standby)) {
		b.WriteString(fmt.Sprintf("- %s: %s\n", key, p.Standby[key]))
	}
	return b.String()
}

// describeDriver returns the Markdown for a scale-out or a scale-in: its step, provider and attempt, and the reason
// why the last attempt ended.
func describeDriver(d *driver.Driver) string {
	i := &d.Instance
	var b strings.Builder
	b.WriteString(fmt.Sprintf("instance **%s**: %s since %s", i.Name, i.Phase, moment(i.Since)))
	if p := i.Provider(); p != "" {
		b.WriteString(fmt.Sprintf(", attempt %d on provider **%s**", i.Attempt, p))
	}
	b.WriteString("\n")
	if i.Stuck != "" {
		b.WriteString("\n**stuck**: " + i.Stuck + "\n")
	}
	if f := i.Failure; f != nil {
		b.WriteString(fmt.Sprintf("\nlast failure: %s: %s\n", f.Code, f.Message))
	}
	if len(i.Refused) > 0 {
		b.WriteString("\nnot tried again: " + strings.Join(i.Refused[:min(len(i.Refused), describedRows)], ", ") + "\n")
	}
	return b.String()
}

// moment formats a time for the Temporal UI, with the date, because a node may exist for weeks.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// logTransition writes the log line for a change of an instance's phase.
func logTransition(ctx workflow.Context, group string, t fleet.Transition) {
	facts := []any{"group", group, "instance", t.Instance, "attempt", t.Attempt}
	if t.Provider != "" {
		facts = append(facts, "provider", t.Provider)
	}
	facts = append(facts, "from", string(t.From), "event", string(t.Event), "phase", string(t.To))
	workflow.GetLogger(ctx).Info("phase", append(facts, reason(t.Failure)...)...)
}

// logPeering writes the log line for a change of a peering's phase.
func logPeering(ctx workflow.Context, provider string, t provider.Transition) {
	facts := []any{"provider", provider, "from", string(t.From), "event", string(t.Event), "phase", string(t.To)}
	workflow.GetLogger(ctx).Info("peering phase", append(facts, reason(t.Failure)...)...)
}

func reason(f *fleet.Failure) []any {
	if f == nil {
		return nil
	}
	return []any{"code", string(f.Code), "failure", f.Message}
}
