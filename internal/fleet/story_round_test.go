package fleet_test

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
)

// roundStory plays the group a and the observer's rounds over its providers: "round 3 milan=silent turin=granted".
// absent=a-1-1 names slices that are missing on the provider. isolated means that no provider answers. gap means that
// the previous round does not count. late means that the results of the round arrive after three minutes.
type roundStory struct {
	*groupStory
	outlook   comparison.Outlook
	providers map[string]fleet.ProviderSnapshot
	cordoned  map[string]bool
}

func (r *roundStory) tell(verb string, w words, now time.Time) []string {
	switch verb {
	case "unready", "ready":
		in := fleet.GroupInput{}
		for _, name := range w.plain {
			kind := map[string]fleet.EventKind{"unready": fleet.NotReady, "ready": fleet.Registered}[verb]
			in.Facts = append(in.Facts, fleet.Fact{Instance: name, Attempt: 1, Kind: kind})
		}
		r.l.Step(in, now)
		return r.follows(nil, now)
	case "configure":
		r.configure(w, now)
		return r.follows(nil, now)
	case "round":
		return r.round(w, now)
	default:
		return r.groupStory.tell(verb, w, now)
	}
}

func (r *roundStory) configure(w words, now time.Time) {
	spec := storySpec()
	for key, set := range map[string]**fleet.Term{"unready": &spec.Budgets.Unready, "isolated": &spec.Budgets.Isolated} {
		if text := w.pairs[key]; text != "" {
			d, err := time.ParseDuration(text)
			require.NoError(r, err)
			*set = &fleet.Term{Duration: metav1.Duration{Duration: d}}
		}
	}
	r.calls++
	id := "configure-" + now.String()
	require.NoError(r, r.l.Operate(fleet.Configure, fleet.Request{Spec: spec,
		Operation: fleet.Operation{ID: id, GiveUpAt: now.Add(time.Second)}}, now))
}

func (r *roundStory) round(w words, now time.Time) (out []string) {
	number := int64(r.number(w.first(), 0))
	seen := comparison.Outlook{At: now, Isolated: w.has("isolated")}
	for _, id := range slices.Sorted(maps.Keys(w.pairs)) {
		if id == "absent" {
			continue
		}
		seen.Evidence = append(seen.Evidence, r.evidence(id, w))
		if _, known := r.providers[id]; !known {
			r.providers[id] = fleet.ProviderSnapshot{ID: id, Phase: fleet.Established, Holds: []string{"some"},
				Offer: &fleet.Offer{Credentials: fleet.Credentials{KubeconfigFile: id}}}
		}
	}
	if w.has("gap") {
		r.outlook = comparison.Outlook{}
	}
	published := slices.SortedFunc(maps.Values(r.providers),
		func(a, b fleet.ProviderSnapshot) int { return strings.Compare(a.ID, b.ID) })
	groups := []fleet.Snapshot{r.l.Snapshot(now)}
	j := comparison.Judge(r.outlook, seen, groups, published, func(string) bool { return false })
	r.outlook = j.Now
	for _, f := range j.Cordons(groups, r.exists()) {
		r.cordoned[f.Attempt.ObjectName()] = !f.Cordoned
		out = append(out, map[bool]string{true: "uncordon ", false: "cordon "}[f.Cordoned]+f.Attempt.ObjectName())
	}
	for _, p := range published {
		if s, changed := j.Standing(p); changed {
			p.Standing = s
			r.providers[p.ID] = p
			text := "is well"
			if !s.Good() {
				text = "is " + s.Condition() + " since " + s.Since.Format(time.TimeOnly)
			}
			if s.Closes() {
				text += ", takes no new holds"
			}
			out = append(out, "provider "+p.ID+" "+text)
		}
	}
	d := fleet.Differences{Round: fleet.RoundID{Term: 1, Number: number}, Epoch: groups[0].Epoch,
		Revision: groups[0].Revision, Lost: j.Losses["a"]}
	if w.has("late") { // the Node was ready again in between, and is not ready now
		now = now.Add(3 * time.Minute)
		for _, row := range groups[0].Instances {
			if !row.NotReady {
				continue
			}
			for _, kind := range []fleet.EventKind{fleet.Registered, fleet.NotReady} {
				fact := fleet.Fact{Instance: row.Name, Attempt: row.Attempt, Kind: kind}
				r.l.Step(fleet.GroupInput{Facts: []fleet.Fact{fact}}, now)
			}
		}
	}
	r.l.Step(fleet.GroupInput{Differences: &d}, now)
	return r.follows(out, now)
}

func (r *roundStory) evidence(id string, w words) comparison.Evidence {
	e := comparison.Evidence{Provider: id, Access: fleet.AccessGranted}
	heard, measures := strings.CutPrefix(w.pairs[id], "heard-")
	if measures { // the clock of the other gateway continues
		e.Heard = []string{w.first(), heard}
		return e
	}
	switch value := w.pairs[id]; value {
	case "granted":
	case "unconnected", "gatewayless":
		e.Network, e.Here = "the Connection on this cluster is Error", value == "gatewayless"
	case "silent", "refused":
		e.Access = fleet.Access(value)
	case "unknown":
		e.Access = ""
	default:
		e.Tenant = fleet.RefusingKind(value)
	}
	for name := range strings.SplitSeq(w.pairs["absent"], ",") {
		e.Absent = append(e.Absent, r.long(name))
	}
	return e
}

// exists returns the objects of the group that exist.
func (r *roundStory) exists() (found []fleet.Found) {
	for _, e := range r.l.Entries {
		at := fleet.Attempt{Group: "a", Instance: e.Name, Number: e.Attempt, Provider: fleet.Provider{ID: e.Provider()}}
		found = append(found, fleet.Found{Attempt: at, Slice: true, Virtual: true, Node: true, Ready: !e.NotReady,
			Cordoned: r.cordoned[at.ObjectName()]})
	}
	return found
}
