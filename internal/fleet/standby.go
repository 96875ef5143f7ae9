package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// This file keeps peerings ready with providers where the group has no node, so that the next node there needs only a
// slice. Each standby is a hold of size zero at the provider, which establishes the peering and keeps it (I11). The
// group requests a ranking of the providers at intervals and decides by the results. Standbys need not survive a reset
// of the group: the group books new standbys, first where a peering exists, and the observer releases the holds that no
// group lists.

// These are the times of standby peerings.
const (
	standbySettled = 2 * time.Minute  // the interval of rankings while no standby is missing
	standbyShort   = time.Minute      // the interval while standbys are missing
	standbyWaits   = 5 * time.Second  // the interval while a peering is being made
	standbyUnseen  = 2 * time.Minute  // the time for which a requested hold may be missing at its provider
	standbyWorse   = 30 * time.Minute // the time for which another provider must be better before it replaces this one
	standbyBetter  = 1.2              // the factor of price or score by which another provider must be better
)

const standbyPrefix = "standby/"

// StandbyKey returns the key of a standby's hold. It is never a valid ObjectName.
func StandbyKey(group, epoch string, n int) string {
	return fmt.Sprintf("%s%s/%s-%d", standbyPrefix, group, epoch, n)
}

// IsStandby reports whether a hold's key belongs to a standby.
func IsStandby(key string) bool { return strings.HasPrefix(key, standbyPrefix) }

// standbyMost returns the number of providers that the group must keep peered. It returns 0 until the group is
// configured.
func (l *Ledger) standbyMost() int {
	if l.Spec == nil {
		return 0
	}
	return l.Spec.Standby
}

// keepStandby releases the holds that exceed the configured number, and starts a ranking of the providers when a
// ranking is due. A paused group keeps its holds.
func (l *Ledger) keepStandby(now time.Time) {
	most, granted := l.standbyMost(), 0
	for _, h := range slices.Clone(l.Standby) { // the best standby comes first
		if h.State == HoldGranted {
			granted++
		}
		if most == 0 || h.State == HoldGranted && granted > most {
			l.releaseStandby(h)
		}
	}
	if due := l.standbyDue(); !due.IsZero() && !now.Before(due) {
		l.Commands.Add(Command{Kind: CommandStandby})
	}
}

// standbyDue returns the time of the next ranking of the providers. It returns zero for never.
func (l *Ledger) standbyDue() time.Time {
	most := l.standbyMost()
	switch {
	case most == 0 || l.Paused || l.Commands.Has(CommandStandby, CommandHold):
		return time.Time{}
	case slices.ContainsFunc(l.Standby, func(h Standby) bool { return h.State == HoldWaiting }):
		return l.StandbyRanked.Add(standbyWaits)
	case len(l.Standby) < most:
		return l.StandbyRanked.Add(standbyShort)
	default:
		return l.StandbyRanked.Add(standbySettled)
	}
}

// applyRanking processes a ranking of the providers, the best first. It replaces a refused hold, or a hold that its
// provider has lost, immediately. It replaces a hold at a provider that has been worse than another provider for half
// an hour, when the other provider's peering exists.
func (l *Ledger) applyRanking(rows []StandbyRow, now time.Time) {
	l.StandbyRanked = now
	most := l.standbyMost()
	if most == 0 || l.Paused {
		return
	}
	var newcomers []StandbyRow
	held := l.Standby
	l.Standby = nil
	for _, row := range rows {
		n := slices.IndexFunc(held, func(h Standby) bool { return h.Provider == row.Offer.Provider })
		free := n < 0
		if !free {
			h := held[n]
			if h.ends(row, now) {
				l.releaseStandby(h)
				free = row.State == "" // a provider that has lost the hold may get a new one
			} else {
				l.Standby = append(l.Standby, l.granted(h, row, now))
			}
		}
		if free && row.Fits && row.Excluded == "" {
			newcomers = append(newcomers, row)
		}
	}
	l.challenge(rows, newcomers, now)
	for len(l.Standby) < most && len(newcomers) > 0 {
		n := next(newcomers)
		l.bookStandby(newcomers[n], now)
		newcomers = slices.Delete(newcomers, n, n+1)
	}
}

// granted returns the hold. It marks the hold as granted if the ranking reports a grant.
func (l *Ledger) granted(h Standby, row StandbyRow, now time.Time) Standby {
	if row.State == HoldGranted && h.State != HoldGranted {
		h.State, h.Since = HoldGranted, now
		l.Revision++
	}
	return h
}

// ends reports whether a hold must be released immediately: it is refused or excluded, or its provider has lost it.
func (h Standby) ends(row StandbyRow, now time.Time) bool {
	forgotten := row.State == "" && (h.State == HoldGranted || now.Sub(h.Since) > standbyUnseen)
	return row.Excluded != "" || row.State == HoldRefused || forgotten
}

// challenge books an additional hold at a newcomer, a provider without a hold, when it has been better than the
// provider of a hold for standbyWorse. When the newcomer's hold is granted, keepStandby releases the worst hold. If a
// provider has had no offer for that time, challenge releases its hold without a newcomer.
func (l *Ledger) challenge(rows []StandbyRow, newcomers []StandbyRow, now time.Time) {
	wanted := false
	for n := len(l.Standby) - 1; n >= 0; n-- {
		h := &l.Standby[n]
		row := rows[slices.IndexFunc(rows, func(r StandbyRow) bool { return r.Offer.Provider == h.Provider })]
		better := len(newcomers) > 0 && newcomers[0].better(row)
		switch {
		case !better && row.Offers:
			h.Worse = time.Time{}
		case h.Worse.IsZero():
			h.Worse = now
		case now.Sub(h.Worse) < standbyWorse:
		case better:
			wanted, h.Worse = true, now // if this newcomer fails, the next try waits again
		default:
			l.releaseStandby(*h)
		}
	}
	if wanted && len(l.Standby) == l.standbyMost() {
		l.bookStandby(newcomers[0], now)
	}
}

// better reports whether r is so much better than o that r must replace o.
func (r StandbyRow) better(o StandbyRow) bool {
	switch {
	case r.Fits != o.Fits:
		return r.Fits
	case r.Score != o.Score:
		return r.Score >= standbyBetter*o.Score
	default:
		return r.Price < o.Price && standbyBetter*r.Price <= o.Price
	}
}

// next returns the index of the best newcomer. It prefers a newcomer with an existing peering, unless the best newcomer
// is much better.
func next(newcomers []StandbyRow) int {
	warm := func(r StandbyRow) bool { return r.Warm && !newcomers[0].better(r) }
	return max(slices.IndexFunc(newcomers, warm), 0)
}

func (l *Ledger) bookStandby(row StandbyRow, now time.Time) {
	l.StandbySeq++
	l.Revision++
	h := Standby{Provider: row.Offer.Provider, Key: StandbyKey(l.Group, l.Epoch, l.StandbySeq), State: HoldWaiting,
		Since: now}
	l.Standby = append(l.Standby, h)
	l.Commands.Add(Command{Kind: CommandHold, Provider: h.Provider, Hold: &HoldRequest{
		Kind: HoldAcquire, Key: h.Key, Offer: &row.Offer, Budget: l.Spec.Budgets.Peer, NetworkBudget: l.Spec.Budgets.Network,
	}})
}

// StandbyQuestion returns the input of the next ranking. It returns nil when the group keeps no standbys any longer.
func (l *Ledger) StandbyQuestion() *StandbyQuestion {
	if l.standbyMost() == 0 {
		return nil
	}
	return &StandbyQuestion{Spec: l.Spec.InstanceSpec, Standby: l.Spec.Standby, Held: l.Standby, Failures: l.Failures}
}

func (l *Ledger) releaseStandby(h Standby) {
	l.Revision++
	l.Standby = slices.DeleteFunc(l.Standby, func(other Standby) bool { return other.Key == h.Key })
	l.Commands.Add(Command{Kind: CommandHold, Provider: h.Provider, Hold: &HoldRequest{Kind: HoldRelease, Key: h.Key}})
}
