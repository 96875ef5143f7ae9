package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// These lists contain the stages of the verbs, in their order. A stage of Join starts when the previous stage is
// reached.
var (
	peerStages = []backend.Stage{
		backend.StageConnection, // this stage represents all stages of the network
		backend.StageNonce, backend.StageSignedNonce, backend.StageTenant, backend.StageIdentity, backend.StageReachable,
	}
	joinStages = []backend.Stage{
		backend.StageSliceAuth, backend.StageResources, backend.StageVirtualKubelet, backend.StageNode, backend.StageReady,
	}
	unpeerStages = []backend.Stage{backend.StageIdentityGone, backend.StageTenantGone}
)

// waiting describes the wait of a verb. The field due is the time of the next try. If it is zero, the verb waits for
// a change of the objects that it touches, or of the object whose key is in the field on.
type waiting struct {
	stage   backend.Stage
	message string
	due     time.Time
	on      string
}

// at reports whether the stage, or a later stage in the order, is reached.
func (t Track) at(order []backend.Stage, stage backend.Stage) bool {
	have, want := slices.Index(order, t.Stage), slices.Index(order, stage)
	return have > want || have == want && t.Reached
}

// pass moves the track to a stage. Until the stage is reached it returns the reason for the wait. Then it returns
// nil, nil.
func (t *Track) pass(
	p *Provider, order []backend.Stage, stage backend.Stage, delay time.Duration, now time.Time,
) (*waiting, error) {
	if t.at(order, stage) {
		return nil, nil
	}
	if p.Knobs.Unreachable {
		return nil, unreachable(stage, p.ID)
	}
	if w := t.start(p, stage, delay, now); w != nil {
		return w, nil
	}
	return t.advance(p, delay, now)
}

// start starts a stage and returns the wait for it, or nil if the stage has already started. Each stage starts in its
// own change of the world, even without a delay, so that other processes see the stage, and a killed process leaves the
// world in that stage.
func (t *Track) start(p *Provider, stage backend.Stage, delay time.Duration, now time.Time) *waiting {
	if t.Stage == stage {
		return nil
	}
	*t = Track{Stage: stage, Since: now.UTC()}
	return &waiting{stage: stage, message: fmt.Sprintf("asked provider %s", p.ID), due: now.Add(delay)}
}

// advance checks the current stage. Until the stage is reached it returns the reason for the wait, and then nil, nil.
// If the provider refuses the stage, it returns an error.
func (t *Track) advance(p *Provider, delay time.Duration, now time.Time) (*waiting, error) {
	if t.Reached {
		return nil, nil
	}
	closed := p.Condition != "" && (t.Stage == backend.StageTenant || t.Stage == backend.StageResources)
	if closed || p.Knobs.Refuse == t.Stage {
		return nil, &backend.StageError{Stage: t.Stage, Message: p.describe("refused"), Err: backend.ErrDenied}
	}
	if w := p.waitFor(t.Stage, t.Since.Add(delay), now); w != nil {
		return w, nil
	}
	t.Reached = true
	return nil, nil
}

// waitFor returns the reason why the provider has not reached the stage at the given time, or nil if it has reached
// the stage.
func (p *Provider) waitFor(stage backend.Stage, due, now time.Time) *waiting {
	switch {
	case p.Knobs.Hang == stage:
		return &waiting{stage: stage, message: p.describe("no answer yet")}
	case now.Before(due):
		return &waiting{stage: stage, message: fmt.Sprintf("provider %s is at it", p.ID), due: due}
	default:
		return nil
	}
}

// describe returns the provider's configured message, or the given text.
func (p *Provider) describe(otherwise string) string {
	if p.Knobs.Message != "" {
		return fmt.Sprintf("provider %s says: %s", p.ID, p.Knobs.Message)
	}
	return fmt.Sprintf("provider %s: %s", p.ID, otherwise)
}
