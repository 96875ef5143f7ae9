package fleet_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/provider"
)

// providerStory plays the provider milan, which offers 4 CPUs. An acquire requests 2 CPUs.
type providerStory struct {
	*subject
	p     *provider.State
	seen  int64
	holds map[string]string
	phase string
	runs  int // number from which the first run counts its peering runs
}

func (s *providerStory) tell(verb string, w words, now time.Time) []string {
	in := provider.Input{}
	switch verb {
	case "begin": // the provider recovers until the list of its objects arrives
		s.p, s.holds, s.seen = provider.New("milan", now), map[string]string{}, 0
		if s.runs == 0 {
			s.runs = s.p.Run
		}
	case "acquire", "release", "broken", "refusing", "leftover", "noRoom":
		in.Requests = []fleet.HoldRequest{s.request(verb, w, now)}
	case "cordon", "uncordon":
		on := verb == "cordon"
		in.Cordon = &on
	case "report":
		r := fleet.PeeringReport{Run: s.runs + s.number(w.pairs["run"], s.p.Run-s.runs), Event: fleet.PeeringEvent(w.first())}
		if code := w.pairs["failure"]; code != "" {
			r.Failure = fleet.NewFailure(fleet.Code(code), "milan", "", code)
		}
		r.Refusing = s.refusal(w, now)
		in.Report = &r
	case "result":
		in.Result = s.result(w, now)
	case "round":
		d := fleet.Differences{Round: fleet.RoundID{Number: int64(s.number(w.first(), 0))}, Revision: s.p.Revision,
			Remains: w.has("remains")}
		if key := w.pairs["unheld"]; key != "" {
			d.Unheld = []string{s.long(key)}
		}
		if key := w.pairs["unused"]; key != "" {
			d.Unused = []string{s.long(key)}
		}
		if standing, told := w.pairs["standing"]; told {
			d.Standing = &fleet.Standing{Message: "its words"}
			switch standing {
			case "good":
			case "unconnected":
				d.Standing.Network = true
			case "unconnected-noRoom":
				d.Standing.Network, d.Standing.Fault = true, fleet.ConditionNoRoomForGateway
			case "silent", "refused", "isolated":
				d.Standing.Access = fleet.Access(standing)
			default:
				d.Standing.Tenant = fleet.RefusingKind(standing)
			}
		}
		in.Differences = &d
	case "continue":
		raw, err := json.Marshal(s.p)
		require.NoError(s, err)
		s.p, s.seen = &provider.State{}, 0
		require.NoError(s, json.Unmarshal(raw, s.p))
	case "wait":
	default:
		require.Fail(s, "a provider's story has no verb "+verb)
	}
	before, published := s.p.Snapshot(now), !s.p.Recovering
	s.p.Step(in, now)
	if after := s.p.Snapshot(now); published && after.Revision == before.Revision {
		s.requireSame(before, after)
	}
	return s.follows(now)
}

// refusal parses refusing=<kind>. for=<seconds> sets the end of the refusal.
func (s *providerStory) refusal(w words, now time.Time) *fleet.ProviderRefusal {
	kind := w.pairs["refusing"]
	if kind == "" {
		return nil
	}
	r := &fleet.ProviderRefusal{Kind: fleet.RefusingKind(kind), Reason: "Tenant is " + kind}
	if seconds := s.number(w.pairs["for"], 0); seconds != 0 {
		r.Until = now.Add(time.Duration(seconds) * time.Second)
	}
	return r
}

func (s *providerStory) request(verb string, w words, now time.Time) fleet.HoldRequest {
	r := fleet.HoldRequest{Kind: fleet.HoldRequestKind(verb), Key: w.first(), Refusing: s.refusal(w, now)}
	if verb == "noRoom" {
		r.Message = "no room for the gateway"
	}
	if verb == "acquire" || verb == "leftover" {
		linger := int64(s.number(w.pairs["linger"], 60))
		if !fleet.IsStandby(r.Key) {
			r.Shape = shape("2")
		}
		r.Offer = &fleet.Offer{Name: "milan", Provider: "milan", Lendable: lendable(2), LingerSeconds: &linger,
			Unpeer: fleet.UnpeerPolicy(w.pairs["unpeer"])}
		if nodes := s.number(w.pairs["offers"], 0); nodes > 0 {
			r.Offer.Lendable = lendable(nodes)
		}
		if age := s.number(w.pairs["age"], 0); age > 0 {
			r.Offer.ReadAt = now.Add(-time.Duration(age) * time.Second)
		}
		if age := s.number(w.pairs["expired"], 0); age > 0 {
			past := now.Add(-time.Duration(age) * time.Second)
			r.Offer.Expires = &past
		}
		r.Budget = metav1.Duration{Duration: 90 * time.Second}
	}
	return r
}

func (s *providerStory) result(w words, now time.Time) *fleet.Result {
	for _, c := range s.p.Commands.Open {
		if string(c.Kind) == w.first() && (c.Answer == nil || strings.Contains(c.Answer.Key, w.plain[1])) {
			r := &fleet.Result{ID: c.ID, Outcome: fleet.Outcome(w.plain[len(w.plain)-1]), Found: s.objects(w.pairs["found"])}
			if w.has("peered") {
				r.Peering, r.Outcome = &fleet.Provider{ID: "milan", Refusing: s.refusal(w, now)}, fleet.OutcomeDone
			} else {
				r.Refusing = s.refusal(w, now)
			}
			return r
		}
	}
	require.Fail(s, fmt.Sprintf("no such command is open: %v of %v", w.plain, s.p.Commands.Open))
	return nil
}

func (s *providerStory) follows(now time.Time) (out []string) {
	for _, c := range s.p.Commands.Open {
		if c.ID > s.seen {
			out = append(out, commandText(c))
		}
	}
	s.seen = s.p.Commands.Last
	free := s.p.Free()
	phase := fmt.Sprintf("%s, free cpu %s", s.p.Phase, free.Cpu())
	if due := s.p.Due(now); !due.IsZero() {
		phase += ", due " + due.Format(time.TimeOnly)
	}
	if s.p.Recovering {
		phase += ", recovering"
	}
	if !s.p.Cordoned.IsZero() {
		phase += ", cordoned"
	}
	if f := s.p.Failure; f != nil {
		phase += fmt.Sprintf(", failed %d times, last by %s", s.p.Failures, f.Code)
	}
	if s.p.Refusing != nil {
		phase += ", " + string(s.p.Refusing.Kind)
	}
	if !s.p.Standing.Good() {
		phase += ", " + s.p.Standing.Condition()
	}
	for _, moved := range s.p.Transitions() {
		out = append(out, fmt.Sprintf("%s to %s by %s", moved.From, moved.To, moved.Event))
	}
	published := s.p.Snapshot(now)
	if n := len(published.Waiting); n > 0 {
		phase += fmt.Sprintf(", %d waiting", n)
	}
	for _, key := range slices.Sorted(maps.Keys(published.Standby)) {
		phase += fmt.Sprintf(", %s %s", key, published.Standby[key])
	}
	if phase != s.phase {
		out = append(out, phase)
	}
	s.phase = phase
	for _, key := range slices.Sorted(maps.Keys(s.p.Holds)) {
		if state := string(s.p.Holds[key].State); s.holds[key] != state {
			out = append(out, key+" "+state)
			s.holds[key] = state
		}
	}
	for _, key := range sortedNames(s.holds) {
		if _, known := s.p.Holds[key]; !known {
			out = append(out, key+" is forgotten")
			delete(s.holds, key)
		}
	}
	return out
}
