package e2e_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// described holds the parts of `temporal workflow describe -o json` that the suites read.
type described struct {
	WorkflowExecutionInfo struct {
		Status string
		Memo   struct {
			Fields struct{ Snapshot json.RawMessage }
		}
	}
	PendingActivities []struct {
		HeartbeatDetails []struct{ Stage, Message string } // activities.Beat
		LastFailure      struct{ Message string }
	}
}

func (s *stack) describe(ctx context.Context, workflow string) (described, error) {
	out, err := s.cli(ctx, "workflow", "describe", "-w", hub+"/"+workflow, "-o", "json")
	if err != nil {
		return described{}, err
	}
	var d described
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		return described{}, fmt.Errorf("read description of %s: %w", workflow, err)
	}
	return d, nil
}

// cancelledByHand is the message of an attempt that waited for a peering when an operator cancelled the peering.
const cancelledByHand = "was cancelled by an operator"

// cancel cancels a workflow as an operator does.
func (s *stack) cancel(ctx context.Context, workflow string) error {
	_, err := s.cli(ctx, "workflow", "cancel", "-w", hub+"/"+workflow)
	return err
}

// waitsFor returns the stage for which a workflow's activity waits, and the activity's message. It reads both from
// the last heartbeat, as an operator does.
func (s *stack) waitsFor(ctx context.Context, workflow string) (string, error) {
	d, err := s.describe(ctx, workflow)
	if err != nil {
		return "", err
	}
	var words []string
	for _, a := range d.PendingActivities {
		for _, beat := range a.HeartbeatDetails {
			words = append(words, beat.Stage, beat.Message)
		}
	}
	return strings.Join(words, ": "), nil
}

// groupSnapshot returns the published state of the group.
func (s *stack) groupSnapshot(ctx context.Context) (snapshot fleet.Snapshot, err error) {
	return snapshot, s.published(ctx, "nodegroup/"+group, &snapshot)
}

// peeringPhase returns the phase of the peering with a provider. Without an entity it returns Absent.
func (s *stack) peeringPhase(ctx context.Context, provider *cluster) (fleet.PeeringPhase, error) {
	var state fleet.ProviderSnapshot
	err := s.published(ctx, "provider/"+provider.name, &state)
	if err != nil && strings.Contains(err.Error(), "not found") || err == nil && state.Phase == "" {
		return fleet.Absent, nil
	}
	return state.Phase, err
}

// published reads the memo of a running entity.
func (s *stack) published(ctx context.Context, workflow string, out any) error {
	d, err := s.describe(ctx, workflow)
	if err != nil {
		return err
	}
	if d.WorkflowExecutionInfo.Status != "WORKFLOW_EXECUTION_STATUS_RUNNING" {
		return nil // the entity has closed: nothing is running
	}
	err = decodeMemo(d.WorkflowExecutionInfo.Memo.Fields.Snapshot, out)
	if err != nil {
		return fmt.Errorf("read what %s has published: %w", workflow, err)
	}
	return nil
}

// decodeMemo decodes a memo in the form in which the CLI prints it. A large memo is a payload with compressed JSON.
// Any other memo is plain JSON.
func decodeMemo(memo json.RawMessage, out any) error {
	var payload struct{ Data []byte }
	if err := json.Unmarshal(memo, &payload); err != nil || payload.Data == nil {
		return json.Unmarshal(memo, out)
	}
	packed, err := gzip.NewReader(bytes.NewReader(payload.Data))
	if err != nil {
		return err
	}
	return json.NewDecoder(packed).Decode(out)
}

// peeringEnds waits until no workflow for the peering with a provider runs. After a failure, a peering is tried again
// only after a pause. So that the next part of the suite does not wait for this, peeringEnds closes the entity, which
// then forgets the failure.
func (r *run) peeringEnds(ctx context.Context, provider *cluster) {
	r.t.Helper()
	r.until(ctx, "peering with "+provider.name+" is over", 7*time.Minute, func(ctx context.Context) error {
		phase, err := r.s.peeringPhase(ctx, provider)
		switch {
		case err != nil || phase == fleet.Absent:
			return err
		case phase == fleet.CoolOff:
			if err := r.s.cancel(ctx, "provider/"+provider.name); err != nil {
				return err
			}
		case phase == fleet.Refusing: // stays until the provider lifts it; checked after a minute, then every five minutes
			if err := setTenantCondition(ctx, provider, "Active"); err != nil {
				return err
			}
		}
		return fmt.Errorf("the peering with %s is %s", provider.name, phase)
	})
}
