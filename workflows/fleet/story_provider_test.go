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

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// providerStory is milan's, which offers 4 CPUs; an acquire asks for 2.
type providerStory struct {
	*subject
	p     *fleet.ProviderState
	seen  int64
	holds map[string]string
	phase string
}

func (s *providerStory) tell(verb string, w words, now time.Time) []string {
	in := fleet.ProviderInput{}
	switch verb {
	case "begin": // it recovers until its list has come
		s.p, s.holds = fleet.NewProviderState("milan", now), map[string]string{}
	case "acquire", "release", "broken":
		in.Requests = []fleet.HoldRequest{s.request(verb, w)}
	case "report":
		r := fleet.PeeringReport{Run: s.number(w.pairs["run"], s.p.Run), Event: fleet.PeeringEvent(w.first())}
		if code := w.pairs["failure"]; code != "" {
			r.Failure = fleet.NewFailure(fleet.Code(code), "milan", "", code)
		}
		in.Report = &r
	case "result":
		in.Result = s.result(w)
	case "round":
		d := fleet.Differences{Round: int64(s.number(w.first(), 0)), Began: now.Add(-time.Second), Remains: w.has("remains")}
		if key := w.pairs["unheld"]; key != "" {
			d.Unheld = []string{key}
		}
		if key := w.pairs["unused"]; key != "" {
			d.Unused = []string{key}
		}
		in.Differences = &d
	case "continue":
		raw, err := json.Marshal(s.p)
		require.NoError(s, err)
		s.p, s.seen = &fleet.ProviderState{}, 0
		require.NoError(s, json.Unmarshal(raw, s.p))
	case "wait":
	default:
		require.Fail(s, "a provider's story has no verb "+verb)
	}
	s.p.Step(in, now)
	return s.follows(now)
}

func (s *providerStory) request(verb string, w words) fleet.HoldRequest {
	r := fleet.HoldRequest{Kind: fleet.HoldRequestKind(verb), Key: w.first()}
	if verb == "acquire" {
		linger := int64(s.number(w.pairs["linger"], 60))
		r.Shape = shape("2")
		r.Offer = &fleet.Offer{Name: "milan", Provider: "milan", Lendable: lendable(2), LingerSeconds: &linger,
			Unpeer: fleet.UnpeerPolicy(w.pairs["unpeer"])}
		r.Budget = metav1.Duration{Duration: 90 * time.Second}
	}
	return r
}

func (s *providerStory) result(w words) *fleet.Result {
	for _, c := range s.p.Commands.Open {
		if string(c.Kind) == w.first() && (c.Answer == nil || strings.Contains(c.Answer.Key, w.plain[1])) {
			r := &fleet.Result{ID: c.ID, Outcome: fleet.Outcome(w.plain[len(w.plain)-1]), Found: s.objects(w.pairs["found"])}
			if w.has("peered") {
				r.Peering, r.Outcome = &fleet.Provider{ID: "milan"}, fleet.OutcomeDone
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
	return out
}
