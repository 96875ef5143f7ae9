package fleet_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/driver"
)

func sortedNames(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// driverStory plays the driver of the instance a-1.
type driverStory struct {
	*subject
	d     *driver.Driver
	state string
}

func (s *driverStory) tell(verb string, w words, now time.Time) []string {
	ev := driver.Event{}
	switch verb {
	case "begin": // begins a scale-out, or a scale-in on a provider
		s.epochs = []string{fleet.NewEpoch(now)}
		i := fleet.NewInstance(s.long("a-1"), &storySpec().InstanceSpec, now)
		if w.first() == string(fleet.ScaleIn) {
			i.Phase, i.Attempt, i.Offer = fleet.Draining, 1, &fleet.Offer{Name: w.plain[1], Provider: w.plain[1]}
		}
		s.d = driver.New(fleet.DriverInput{
			Instance: i, Spec: storySpec().InstanceSpec, Generation: fleet.Generation{Epoch: s.epochs[0], Count: 2},
			Ahead: s.number(w.pairs["ahead"], 0),
		}, now)
	case "ends": // ends the running step
		at := s.d.Instance.AttemptRef()
		ev.Ended = &fleet.Event{Kind: fleet.EventKind(w.first()), Step: s.d.Running, Attempt: at.Number}
		if on := w.pairs["on"]; on != "" {
			ev.Ended.Offer = &fleet.Offer{Name: on, Provider: on}
		}
		if code := w.pairs["failure"]; code != "" {
			ev.Ended.Failure = fleet.NewFailure(fleet.Code(code), at.Provider.ID, "", code)
		}
	case "answer":
		ev.Answer = &fleet.Answer{Key: w.first(), State: fleet.HoldState(w.plain[1]), Provider: w.pairs["from"]}
		if code := w.pairs["failure"]; code != "" {
			ev.Answer.Failure = fleet.NewFailure(fleet.Code(code), "", "", code)
		}
	case "order":
		ev.Order = &fleet.Order{
			Generation: fleet.Generation{Epoch: s.epochs[0], Count: s.number(w.pairs["gen"], 2)},
			Stop:       w.has("stop"), Deleted: w.has("deleted"), Lost: w.has("lost"), Retry: w.has("retry"),
			Paused: w.has("paused"),
			Resend: s.number(w.pairs["resend"], 0), Attempt: s.number(w.pairs["attempt"], 1),
		}
	case "elapsed":
		ev.Elapsed = true
	case "cancelled":
		ev.Cancelled = true
	case "reset":
		ev.Reset = true
	default:
		require.Fail(s, "a driver's story has no verb "+verb)
	}
	var out []string
	for _, a := range s.d.Step(ev, now) {
		out = append(out, actionText(a)...)
	}
	i := &s.d.Instance
	state := fmt.Sprintf("%s attempt %d on %q, refused %v", i.Phase, i.Attempt, i.Provider(), i.Refused)
	if i.Failure != nil {
		state += ", " + string(i.Failure.Code)
	}
	if i.Force {
		state += ", forced"
	}
	if i.Leaving {
		state += ", leaving"
	}
	if i.Stuck != "" {
		state += ", stuck"
	}
	if s.d.Ahead > 0 {
		state += fmt.Sprintf(", %d ahead", s.d.Ahead)
	}
	if state != s.state {
		out = append(out, state)
	}
	s.state = state
	return out
}

func actionText(a driver.Action) (out []string) {
	if a.Run != "" {
		out = append(out, "-> run "+string(a.Run))
	}
	if a.CancelStep {
		out = append(out, "-> call the step off")
	}
	if a.Resend {
		out = append(out, "-> send the request again")
	}
	if a.Timer > 0 {
		out = append(out, "-> wait "+a.Timer.String())
	}
	if a.Release != nil {
		out = append(out, "-> release "+a.Release.ObjectName()+" on "+a.Release.Provider.ID)
	}
	if v := a.Report; v != nil {
		text := fmt.Sprintf("-> tell %s attempt %d, sequence %d, %s", v.Phase, v.Attempt, v.Sequence, v.End)
		if v.Failure != nil {
			text += ", " + string(v.Failure.Code)
		}
		if v.Stuck != "" {
			text += ", stuck"
		}
		for _, left := range v.Abandoned {
			text += ", left " + left.ObjectName() + " on " + left.Provider.ID
		}
		out = append(out, text)
	}
	if a.End != "" {
		out = append(out, "-> end "+string(a.End))
	}
	return out
}
