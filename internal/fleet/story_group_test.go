package fleet_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

type groupStory struct {
	*subject
	l     *fleet.Ledger
	saved []byte
	seen  int64 // the newest command that the story shows
	rows  map[string]string
	calls int
}

func (g *groupStory) tell(verb string, w words, now time.Time) []string {
	if verb == "begin" { // the group is configured, and the line lists the objects that exist
		g.l = fleet.NewLedger("a", now.Add(-time.Minute))
		g.epochs = append(g.epochs, g.l.Epoch)
		g.l.Step(fleet.GroupInput{Result: &fleet.Result{ID: 1, Outcome: fleet.OutcomeDone,
			Found: g.objects(w.pairs["found"])}}, now)
		require.NoError(g, g.l.Operate(fleet.Configure, fleet.Request{Spec: storySpec()}, now))
		g.rows, g.seen = map[string]string{}, 1
		g.l.Step(fleet.GroupInput{}, now)
		return g.follows(nil, now)
	}
	return g.follows(g.play(verb, w, now), now)
}

// step applies the input. It requires that the published state changes only together with its revision.
func (g *groupStory) step(in fleet.GroupInput, now time.Time) {
	before := g.l.Snapshot(now)
	g.l.Step(in, now)
	if after := g.l.Snapshot(now); after.Position() == before.Position() {
		for _, s := range []*fleet.Snapshot{&before, &after} { // these fields may change before the next revision
			s.Cost = money.Cost{}
			for n := range s.Standby {
				s.Standby[n].Worse = time.Time{}
			}
		}
		g.requireSame(before, after)
	}
}

func (g *groupStory) play(verb string, w words, now time.Time) (out []string) {
	in := fleet.GroupInput{}
	switch verb {
	case "grow", "shrink", "release", "pause", "resume":
		out = g.operate(verb, w, now)
	case "configure":
		spec := storySpec()
		spec.Standby = g.number(w.pairs["standby"], 0)
		require.NoError(g, g.l.Operate(fleet.Configure, fleet.Request{Spec: spec}, now))
	case "spending":
		out = g.spend(w, now)
	case "view":
		in.Views = []fleet.View{g.view(w)}
	case "fact":
		in.Facts = []fleet.Fact{{Instance: w.first(), Attempt: g.number(w.pairs["attempt"], 1),
			Kind: fleet.EventKind(w.plain[1])}}
	case "result":
		in.Result = g.result(w)
	case "round":
		d := fleet.Differences{Round: fleet.RoundID{Number: int64(g.number(w.first(), 0))}, Revision: g.l.Revision,
			Empty: w.has("empty")}
		if w.has("early") { // the group has changed since the round read it
			d.Revision--
		}
		d.Found = g.objects(w.pairs["found"])
		if missing := w.pairs["missing"]; missing != "" {
			d.Missing = []string{g.long(missing)}
		}
		in.Differences = &d
	case "retry":
		in.Retry = true
	case "save":
		g.saved, _ = json.Marshal(g.l)
		return nil
	case "restore", "continue":
		if verb == "continue" {
			g.saved, _ = json.Marshal(g.l)
			for _, c := range g.l.Commands.Open {
				out = append(out, "again "+commandText(c))
			}
		}
		l := &fleet.Ledger{}
		require.NoError(g, json.Unmarshal(g.saved, l))
		g.l = l.Restore()
	case "wait":
	default:
		require.Fail(g, "a group's story has no verb "+verb)
	}
	g.step(in, now)
	if g.l.Epoch != g.epochs[len(g.epochs)-1] && len(g.saved) == 0 || g.l.Epoch > g.epochs[len(g.epochs)-1] {
		g.epochs = append(g.epochs, g.l.Epoch)
		g.seen = 0
		out = append(out, "begins anew")
	}
	return out
}

func (g *groupStory) operate(verb string, w words, now time.Time) []string {
	g.calls++
	r := fleet.Request{Operation: fleet.Operation{ID: fmt.Sprint(g.calls), GiveUpAt: now.Add(time.Second)},
		Paused: verb == "pause"}
	if id := w.pairs["id"]; id != "" {
		r.Operation.ID = id
	}
	if late := w.pairs["late"]; late != "" {
		r.Operation.GiveUpAt = now.Add(-time.Duration(g.number(late, 0)) * time.Second)
	}
	if seen := w.pairs["seen"]; seen != "" {
		r.Seen = fleet.Position{Epoch: g.l.Epoch, Revision: int64(g.number(seen, 0))}
	}
	if booked := w.pairs["booked"]; booked != "" {
		r.Seen = fleet.Position{Epoch: g.l.Epoch, Booked: g.number(booked, 0)}
	}
	if verb == "resume" {
		verb = string(fleet.Pause)
	}
	if verb == "release" {
		r.Names = w.plain
	} else {
		r.Delta, r.PriceCap = g.number(w.first(), 0), g.amount(w.pairs["cap"])
	}
	before := g.l.NextSeq
	if err := g.l.Operate(fleet.Verb(verb), r, now); err != nil {
		return []string{"refused: " + err.Error()}
	}
	for _, e := range g.l.Entries[len(g.l.Entries)-(g.l.NextSeq-before):] {
		g.books(e.Name, g.l.Epoch)
	}
	return nil
}

// spend configures spending limits.
func (g *groupStory) spend(w words, now time.Time) []string {
	s := storySpec()
	s.Spending = &money.Spending{}
	for key, amount := range map[string]**float64{"hour": &s.Spending.Hourly.Hard, "month": &s.Spending.Monthly.Hard} {
		if text := w.pairs[key]; text != "" {
			*amount = new(float64)
			**amount = g.amount(text)
		}
	}
	require.NoError(g, g.l.Operate(fleet.Configure, fleet.Request{Spec: s}, now))
	return nil
}

func (g *groupStory) view(w words) fleet.View {
	name := w.first()
	v := fleet.View{
		Instance: name, Phase: fleet.Phase(w.plain[1]), Attempt: g.number(w.pairs["attempt"], 1),
		End:      fleet.End(w.pairs["end"]),
		Sequence: g.number(w.pairs["seq"], 1), Stuck: w.pairs["stuck"], Force: w.has("forced"),
		SpecHash: g.l.Spec.InstanceSpec.Hash(), BookedAt: t0,
		Began: t0.Add(time.Duration(g.number(w.pairs["run"], 1)) * time.Second),
	}
	v.Generation = fleet.Generation{Epoch: g.epochOf(name), Count: g.number(w.pairs["gen"], 1)}
	if p := w.pairs["on"]; p != "" {
		v.Offer = &fleet.Offer{Name: p, Provider: p, Hourly: g.amount(w.pairs["price"])}
	}
	for _, left := range g.objects(w.pairs["left"]) {
		v.Abandoned = append(v.Abandoned, left.Attempt)
	}
	if code := w.pairs["failure"]; code != "" {
		v.Failure = fleet.NewFailure(fleet.Code(code), "", "", code)
	}
	return v
}

// result parses the result of an open command: the kind of the command, its instance or attempt, and its outcome.
func (g *groupStory) result(w words) *fleet.Result {
	for _, c := range g.l.Commands.Open {
		named := len(w.plain) < 3 || strings.Contains(commandText(c), w.plain[1])
		if string(c.Kind) != w.first() || !named {
			continue
		}
		r := &fleet.Result{ID: c.ID, Outcome: fleet.Outcome(w.plain[len(w.plain)-1]), Found: g.objects(w.pairs["found"])}
		if c.Kind == fleet.CommandDescribe {
			s := fleet.DriverStatus{Instance: w.plain[1], Running: w.has("running"), Completed: w.has("completed"),
				Failing: w.has("failing")}
			if len(r.Found) > 0 {
				s.Found = &r.Found[0]
			}
			r.Drivers, r.Outcome = []fleet.DriverStatus{s}, fleet.OutcomeDone
		}
		if c.Kind == fleet.CommandInspect || c.Kind == fleet.CommandRecover || c.Kind == fleet.CommandStandby {
			r.Outcome = fleet.OutcomeDone
		}
		r.Standby = g.standbyRows(w.pairs["rows"])
		return r
	}
	require.Fail(g, fmt.Sprintf("no such command is open: %v of %v", w.plain, g.l.Commands.Open))
	return nil
}

// standbyRows parses the rows of a ranking, the best first. milan@2:warm:granted has the price 2, an existing peering
// and a granted hold. full means that the provider has no free capacity, gone that it has no offer, and cordoned that
// it is excluded.
func (g *groupStory) standbyRows(text string) (rows []fleet.StandbyRow) {
	for one := range strings.SplitSeq(text, ",") {
		fields := strings.Split(one, ":")
		provider, price, ok := strings.Cut(fields[0], "@")
		if !ok {
			continue
		}
		row := fleet.StandbyRow{Offer: fleet.Offer{Name: provider, Provider: provider}, Offers: true, Fits: true,
			Price: float64(g.number(price, 0))}
		for _, word := range fields[1:] {
			switch word {
			case "warm":
				row.Warm = true
			case "full":
				row.Fits = false
			case "gone":
				row.Fits, row.Offers = false, false
			case "cordoned":
				row.Fits, row.Excluded = false, string(choice.FilterCordoned)
			default:
				row.State = fleet.HoldState(word)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// follows returns the new commands and the changed rows of a step.
func (g *groupStory) follows(out []string, now time.Time) []string {
	for _, c := range g.l.Commands.Open {
		if c.ID > g.seen {
			out = append(out, commandText(c))
		}
	}
	g.seen = g.l.Commands.Last
	rows := map[string]string{"": fmt.Sprintf("target %d", g.l.Target())}
	order := []string{""}
	if g.l.Recovering {
		rows[""] += ", recovering"
	}
	if due := g.l.Due(now); !due.IsZero() {
		rows[""] += ", due " + due.Format(time.TimeOnly)
	}
	if rate, _ := g.l.Cost.Rate(); rate > 0 {
		rows[""] += fmt.Sprintf(", %g an hour, %.2f so far", rate.Float(), g.l.Cost.ThisMonth().Float())
	}
	if g.l.Condition != "" {
		rows[""] += ", " + g.l.Condition
	}
	for _, e := range g.l.Entries {
		order, rows[e.Name] = append(order, e.Name), rowText(e)
	}
	for _, h := range g.l.Standby {
		order, rows[h.Key] = append(order, h.Key), fmt.Sprintf("%s %s by %s", h.Key, h.State, h.Provider)
	}
	moved := map[string]string{}
	for _, m := range g.l.Transitions() {
		moved[m.Instance] += fmt.Sprintf(" (%s by %s)", m.From, m.Event)
	}
	for _, name := range order {
		if g.rows[name] != rows[name] || moved[name] != "" {
			out = append(out, rows[name]+moved[name])
		}
	}
	for _, name := range sortedNames(g.rows) {
		if rows[name] == "" {
			out = append(out, name+" is gone"+moved[name])
		}
	}
	g.rows = rows
	return out
}

func rowText(e *fleet.Entry) string {
	text := fmt.Sprintf("%s %s", e.Name, e.Phase)
	if e.Attempt > 0 {
		text += fmt.Sprintf(" attempt %d on %s", e.Attempt, e.Provider())
	}
	if e.Leaving {
		text += ", leaving"
	}
	if e.NotReady {
		text += ", not ready"
	}
	if e.Force {
		text += ", forced"
	}
	if e.Stuck != "" {
		text += ", stuck"
	}
	if e.Failure != nil && e.Phase != fleet.Ready {
		text += ", " + string(e.Failure.Code)
	}
	if e.Driver.Kind != "" {
		text += fmt.Sprintf("; %s %d", e.Driver.Kind, e.Driver.Generation.Count)
	}
	return text
}
