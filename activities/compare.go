package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Round is one round of the comparison: its number, when its lists began, and the entities that differed.
type Round struct {
	Number   int64     `json:"number"`
	Began    time.Time `json:"began"`
	Differed []string  `json:"differed,omitempty"`
	// Watched are the providers that the next round looks at, Outlook what this one has seen, and Before what the round
	// before has, if that counts.
	Watched []fleet.Provider    `json:"watched,omitempty"`
	Outlook comparison.Outlook  `json:"outlook,omitzero"`
	Before  *comparison.Outlook `json:"before,omitempty"`
	// Due is when another round is worth while before the schedule's next; zero for none.
	Due time.Time `json:"due,omitzero"`
	// Sweep is the last look for what only providers have of us.
	Sweep comparison.Sweep `json:"sweep,omitzero"`
}

// before is the outlook of the round before; zero when that does not count.
func (r Round) before() comparison.Outlook {
	if r.Before == nil {
		return comparison.Outlook{}
	}
	return *r.Before
}

// Compare lists what exists first, then reads what the entities publish, and tells each entity that differs now, or did
// in the round before. It judges by the evidence of the providers, see comparison.Judge, and has a provider entity for
// each peering that we own. A list that fails is a round that says nothing and resets nothing.
func (a *Activities) Compare(ctx context.Context, last Round) (Round, error) {
	ctx, stop := beating(ctx)
	defer stop()
	round := Round{Number: last.Number, Began: last.Began, Sweep: last.Sweep}
	found, err := a.Backend.List(ctx, "")
	if err != nil {
		return round, toApplicationError(ctx, "", fmt.Errorf("list objects: %w", err))
	}
	peers, err := a.Backend.Peers(ctx)
	if err != nil {
		return round, toApplicationError(ctx, "", fmt.Errorf("list peerings: %w", err))
	}
	groups, err := a.Entities.Groups(ctx)
	if err != nil {
		return round, toApplicationError(ctx, "", fmt.Errorf("read groups: %w", err))
	}
	providers, err := a.Entities.Providers(ctx)
	if err != nil {
		return round, toApplicationError(ctx, "", fmt.Errorf("read providers: %w", err))
	}
	a.ensure(ctx, peers, found)
	j := comparison.Judge(last.before(), last.Outlook, groups, providers)
	round.Outlook, round.Watched, round.Due = j.Now, j.Watched(providers, found, peers), j.Due
	a.cordon(ctx, j.Cordons(groups, found))
	a.Conditions.Set(j.Conditions(providers), last.Sweep.Orphans, a.now())
	for _, g := range groups {
		d := comparison.GroupDiffers(g, found)
		d.Round, d.Began, d.Lost = round.Number, round.Began, j.Losses[g.Group]
		differs(ctx, &round, last, "group/"+g.Group, d, false,
			func() error { return a.Messages.GroupDiffers(ctx, g.Group, d) })
	}
	for _, p := range providers {
		d := comparison.ProviderDiffers(p, groups, found, peers)
		d.Round, d.Began = round.Number, round.Began
		if s, changed := j.Standing(p); changed {
			d.Standing = &s
		}
		differs(ctx, &round, last, "provider/"+p.ID, d, mayClose(p, round.Began),
			func() error { return a.Messages.ProviderDiffers(ctx, p.ID, d) })
	}
	return round, nil
}

// mayClose reports whether a provider's entity, which runs no timer, ends when it is told something.
func mayClose(p fleet.ProviderSnapshot, now time.Time) bool {
	return p.Phase == fleet.Absent && len(p.Holds)+len(p.Standby) == 0 && p.Cordoned.IsZero() &&
		now.Sub(p.Since) > fleet.CloseAfter
}

// differs tells one entity, if it must hear, there is something to tell, or was in the round before.
func differs(ctx context.Context, round *Round, last Round, name string, d fleet.Differences, must bool,
	tell func() error) {
	rows := d.Rows()
	if rows > 0 {
		round.Differed = append(round.Differed, name)
	} else if !must && !slices.Contains(last.Differed, name) {
		return
	}
	err := tell()
	if err == nil || errors.Is(err, fleet.ErrNotRunning) {
		return
	}
	activity.GetLogger(ctx).Warn("a difference cannot be delivered; the next round tries again", "entity", name,
		"error", err)
	if rows == 0 {
		round.Differed = append(round.Differed, name) // it must hear in the next round that all is well
	}
}

// cordon cordons these Nodes, or uncordons them; what fails the next round tries again.
func (a *Activities) cordon(ctx context.Context, found []fleet.Found) {
	wait.ForAll(found, fanOut, func(_ int, f fleet.Found) {
		if err := a.Backend.Cordon(ctx, f.Attempt, !f.Cordoned); err != nil {
			activity.GetLogger(ctx).Warn("node cannot be cordoned or uncordoned; the next round tries again", "node",
				f.Attempt.ObjectName(), "error", err)
		}
	})
}

// ensure has a provider entity for each of our peerings and slices: one that somebody terminated, or that Temporal
// lost, would leave its peering for ever. One provider that cannot be started holds up no other.
func (a *Activities) ensure(ctx context.Context, peers []fleet.Provider, found []fleet.Found) {
	ids := map[string]bool{}
	for _, p := range peers {
		ids[p.ID] = true
	}
	for _, f := range found {
		ids[f.Attempt.Provider.ID] = true
	}
	delete(ids, "") // of objects that do not say it
	for id := range ids {
		switch started, err := a.Entities.Ensure(ctx, id); {
		case err != nil:
			activity.GetLogger(ctx).Warn("provider entity cannot be started for a peering that exists", "provider", id, "error",
				err)
		case started:
			activity.GetLogger(ctx).Info("provider entity started for a peering that exists", "provider", id)
		}
	}
}
