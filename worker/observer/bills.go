package observer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Accounts reads the costs of running groups from the groups, and the bills of ended groups from the Hub workflow. A
// bill holds the costs of one life of a group, from a start of the group to its end. The methods return the errors of
// Temporal's client.
type Accounts interface {
	// Costs returns the snapshot of a running group, and the costs of its past days.
	Costs(ctx context.Context, group string) (fleet.Snapshot, []money.CostDay, error)
	// Ended returns the sums of this month for the ended groups.
	Ended(ctx context.Context) (money.Ended, error)
	// Bills returns all bills of ended groups.
	Bills(ctx context.Context) (money.Book, error)
	// HandOver adds bills to the Hub workflow. It is idempotent.
	HandOver(ctx context.Context, bills []money.Bill) error
}

// savedBills is the saved document with the bills of a hub's groups. It survives the loss of Temporal's data.
type savedBills struct {
	// Running holds the bills of the groups that ran in the last round, and Ended the bills of ended groups.
	Running money.Book `json:"running,omitempty"`
	Ended   money.Book `json:"ended,omitempty"`
}

const (
	// maxBills bounds each of the two lists of savedBills, in bytes.
	maxBills = 350 << 10
	// billsBound limits the duration of one save. The next save includes the bills that could not be read in this time.
	billsBound = 15 * time.Second
	// When a group has been absent for goneFor, the observer sends its bill to the Hub workflow. A group whose history
	// is lost is started again within this time, and continues its bill.
	goneFor = 5 * time.Minute
)

// bills keeps the saved bills up to date. Only the leader's loop uses it.
type bills struct {
	document []byte // the document that was read or written last; nil before the first read
	saved    savedBills
	ended    money.Ended // the sums that the Hub workflow published last
	read     bool        // reports whether this leader has read the bills of the Hub workflow
	// absent maps each absent group that has a saved bill to the time since which the group has not run.
	absent map[string]time.Time
	began  time.Time // the beginning of the last round that saved bills
}

// keepBills saves the bills of the groups, and sends the bills of absent groups to the Hub workflow. It does this at
// most once in Observer.Every, also when additional early rounds run. keepBills logs a failure, and the next call
// tries again.
func (o *Observer) keepBills(ctx context.Context, began time.Time, s state, b booked, w world) {
	if o.Costs == nil || o.Accounts == nil || began.Sub(o.bills.began) < o.every() {
		return
	}
	o.bills.began = began
	ctx, cancel := context.WithTimeout(ctx, billsBound)
	defer cancel()
	if err := o.saveBills(ctx, s, b, w); err != nil && ctx.Err() == nil {
		o.Logger.Warn("cannot save the costs of the groups; the next round tries again", "error", err)
	}
}

func (o *Observer) saveBills(ctx context.Context, s state, b booked, w world) error {
	kept := &o.bills
	document, err := o.Costs.Read(ctx)
	if err != nil {
		return err
	}
	if kept.document == nil || !bytes.Equal(document, kept.document) { // another process has saved
		if kept.saved, err = readBills(document); err != nil {
			kept.document = nil // the document stays unchanged until an operator repairs or deletes it
			return err
		}
		kept.document = append([]byte{}, document...)
	}
	o.billRunning(ctx, s, b)
	failed := o.billEnded(ctx, b, w) // the bills of running groups are saved even after this error
	now := time.Now()
	kept.saved.Running.Bound(maxBills, now)
	kept.saved.Ended.Bound(maxBills, now)
	document, err = json.Marshal(kept.saved)
	if err != nil || bytes.Equal(document, kept.document) {
		return errors.Join(err, failed)
	}
	if err := o.Costs.Save(ctx, document); err != nil {
		return errors.Join(err, failed)
	}
	kept.document = document
	return failed
}

// readBills decodes the saved bills; no document means no bills. The error of a document that cannot be decoded states
// the two remedies.
func readBills(document []byte) (s savedBills, err error) {
	if len(document) == 0 {
		return s, nil
	}
	if err = json.Unmarshal(document, &s); err != nil {
		return savedBills{}, fmt.Errorf("the saved costs are not the JSON that this program writes (%w): restore the "+
			"ConfigMap liqo-autoscaler-costs-<hub> in kube-system from a copy, or delete it; then the sums start with the "+
			"groups that run", err)
	}
	return s, nil
}

// billRunning updates the saved bills with the costs of the groups that a round has read. It skips a group whose
// history was reverted and a group that is recovering, because the saved bill is more complete than such a group's
// costs.
func (o *Observer) billRunning(ctx context.Context, s state, b booked) {
	var mu sync.Mutex
	known := slices.Clone(o.bills.saved.Running)
	wait.ForAll(b.groups, concurrentReads, func(_ int, g fleet.Snapshot) {
		old := time.Since(g.Cost.At) > money.CostDays*24*time.Hour
		if g.Recovering || g.Cost.IsEmpty() || old || g.Position().Behind(s.Records[g.Group].Position) {
			return
		}
		bill := g.Bill()
		var ended []money.CostDay
		if rate, unpriced := g.Cost.Rate(); rate > 0 || unpriced > 0 {
			bill.Cost, ended = g.Cost.Until(time.Now())
		}
		bill = bill.Settled()
		have, found := known.Find(g.Group, g.Cost.Since)
		bill.Days, bill.From = withDays(have.Days, ended), have.From
		if !found || have.Cost.At.Format(time.DateOnly) != bill.Cost.At.Format(time.DateOnly) {
			bounded, cancel := context.WithTimeout(ctx, readBound)
			defer cancel()
			if _, days, err := o.Accounts.Costs(bounded, g.Group); err == nil {
				bill.Days = withDays(days, ended)
			} else {
				return // the older bill stays saved until a later round succeeds
			}
		}
		mu.Lock()
		defer mu.Unlock()
		o.bills.saved.Running.Add(bill)
	})
}

// withDays returns a copy of the list in the parameter days. It adds each day of the parameter ended whose date does
// not occur in this list.
func withDays(days, ended []money.CostDay) []money.CostDay {
	days = slices.Clone(days)
	for _, day := range ended {
		if !slices.ContainsFunc(days, func(d money.CostDay) bool { return d.Date == day.Date }) {
			days = append(days, day)
		}
	}
	return days
}

// billEnded moves the bills of groups that have ended to savedBills.Ended, and sends the Hub workflow the bills that
// the workflow lacks.
func (o *Observer) billEnded(ctx context.Context, b booked, w world) error {
	kept := &o.bills
	ended, err := o.Accounts.Ended(ctx)
	if err != nil {
		return err
	}
	changed := !kept.read || ended.Bills != kept.ended.Bills || !slices.Equal(ended.Rows, kept.ended.Rows)
	kept.ended = ended
	if kept.absent == nil {
		kept.absent = map[string]time.Time{}
	}
	var closed []money.Bill
	var failed error
	for _, bill := range kept.saved.Running {
		gone, err := o.hasEnded(ctx, bill, b, w)
		if err != nil {
			failed = err
		}
		if gone {
			bill.Ended = true
			closed = append(closed, bill)
		}
	}
	if !changed && len(closed) == 0 {
		return failed
	}
	err = o.exchange(ctx, closed)
	kept.read = err == nil // after an error the next call exchanges the bills again
	return errors.Join(err, failed)
}

// hasEnded reports whether the life of the group that the bill describes has ended: the group runs with a newer life,
// has been absent for goneFor, or has its bill in the Hub workflow.
func (o *Observer) hasEnded(ctx context.Context, bill money.Bill, b booked, w world) (bool, error) {
	for _, g := range b.groups {
		if g.Group == bill.Group {
			delete(o.bills.absent, g.Group)
			return !g.Recovering && !g.Cost.Since.IsZero() && !g.Cost.Since.Equal(bill.Cost.Since), nil
		}
	}
	has := func(f fleet.Found) bool { return f.Attempt.Group == bill.Group }
	if b.unreadGroup(bill.Group) || slices.ContainsFunc(w.found, has) { // a group with objects will be started again
		delete(o.bills.absent, bill.Group)
		return false, nil
	}
	_, err := o.Entities.Group(ctx, bill.Group)
	if !errors.Is(err, fleet.ErrNotRunning) {
		return false, err
	}
	since, known := o.bills.absent[bill.Group]
	if !known {
		since = time.Now()
		o.bills.absent[bill.Group] = since
	}
	sent := func(s money.Spent) bool { return s.Is(bill.Group, bill.Cost.Since) }
	return slices.ContainsFunc(o.bills.ended.Rows, sent) || time.Since(since) >= goneFor, nil
}

// exchange sends the Hub workflow the bills that the workflow lacks, and adds the workflow's bills to
// savedBills.Ended. closed contains the bills of the groups that have ended since the last call.
func (o *Observer) exchange(ctx context.Context, closed []money.Bill) error {
	kept := &o.bills
	hub, err := o.Accounts.Bills(ctx)
	if err != nil {
		return err
	}
	var lacks []money.Bill
	for _, bill := range slices.Concat(closed, kept.saved.Ended) {
		if have, found := hub.Find(bill.Group, bill.Cost.Since); !found || bill.Replaces(have) {
			lacks = append(lacks, bill)
		}
	}
	for batch := range slices.Chunk(lacks, billsPerSignal) {
		if err := o.Accounts.HandOver(ctx, batch); err != nil {
			return err
		}
	}
	for _, bill := range slices.Concat(closed, hub) {
		kept.saved.Ended.Add(bill)
	}
	for _, bill := range closed {
		delete(kept.absent, bill.Group)
		kept.saved.Running = slices.DeleteFunc(kept.saved.Running, func(r money.Bill) bool {
			return r.Is(bill.Group, bill.Cost.Since)
		})
	}
	return nil
}

// billsPerSignal bounds the number of bills in one signal.
const billsPerSignal = 4
