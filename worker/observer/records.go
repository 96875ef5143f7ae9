package observer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// forgottenAfter is the time for which a group must be absent before its record is removed.
const forgottenAfter = 30 * 24 * time.Hour

// record is the saved data of a group.
type record struct {
	fleet.GroupRecord
	At time.Time `json:"at"` // the time of the last round that read the group, by that worker's clock
}

// books updates the records with the groups and providers that a round has read. It never lowers a position: a group
// that has a lower position than its record has lost a part of its history, for example after a restored backup. While
// a group recovers, its record keeps the saved pause, because the recovery restores the pause from the record.
func (s *state) books(b booked, now time.Time) {
	if s.Records == nil {
		s.Records = map[string]record{}
	}
	for _, g := range b.groups {
		r := s.Records[g.Group]
		r.At = now
		if !g.Position().Behind(r.Position) {
			r.Position = g.Position()
			if !g.Recovering {
				r.Paused = g.Paused
			}
		}
		s.Records[g.Group] = r
	}
	maps.DeleteFunc(s.Records, func(_ string, r record) bool { return now.Sub(r.At) > forgottenAfter })
	cordoned := slices.DeleteFunc(slices.Clone(s.Cordoned), b.sawProvider)
	for _, p := range b.providers {
		if !p.Cordoned.IsZero() || p.Recovering && slices.Contains(s.Cordoned, p.ID) {
			cordoned = append(cordoned, p.ID)
		}
	}
	s.Cordoned = merged(cordoned, nil)
}

// Records returns the data of one read for the time recordsFor, and then reads again. recordsFor must be shorter than
// a restart of Temporal: before the activity Join creates objects, it compares a group's history with the records, and
// must detect a backup that was just restored.
const recordsFor = time.Second

// recordsWithin limits the duration of one read, because many scale-outs wait for it.
const recordsWithin = 2 * time.Second

// Records reads the data that the rounds of the leading worker have saved, and saves the positions of groups between
// these rounds. Any worker may use it. It implements activities.Records, and is safe for concurrent use.
type Records struct {
	Memory Memory
	// Costs is the Memory with the groups' bills. nil means that no bills are saved.
	Costs Memory
	// Positions is the document with the positions that groups have saved. nil means that groups save none.
	Positions Shared

	mu    sync.Mutex
	saved state
	err   error
	read  time.Time

	start   sync.Once
	saving  *semaphore.Weighted // one call of Save writes at a time
	turn    sync.Mutex          // protects waiting
	waiting positions           // the positions that no call of Save has stored yet
}

// Group returns the record of a group with its newest saved position; known is false when no round has saved a record.
// It reads the documents at most once a second and otherwise returns the result of the last read, also if this is an
// error. It blocks for at most two seconds.
func (r *Records) Group(ctx context.Context, name string) (saved fleet.GroupRecord, known bool, err error) {
	s, err := r.state(ctx)
	one, known := s.Records[name]
	if at := s.positions[name]; one.Position.Behind(at) && !at.Behind(one.Position) {
		one.Position = at
	}
	return one.GroupRecord, known, err
}

// Bill returns the last saved bill of a group; known is false when no round has saved a bill. In the bill of an ended
// group Ended is true. Each call reads the document, and blocks for at most two seconds.
func (r *Records) Bill(ctx context.Context, group string) (bill money.Bill, known bool, err error) {
	if r.Costs == nil {
		return bill, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, recordsWithin)
	defer cancel()
	document, err := r.Costs.Read(ctx)
	if err != nil {
		return bill, false, fmt.Errorf("read the saved costs: %w", err)
	}
	s, err := readBills(document)
	if bill, known = s.Running.Latest(group); known {
		return bill, known, err
	}
	bill, known = s.Ended.Latest(group)
	bill.Ended = known
	return bill, known, err
}

// Cordoned reports whether the provider was cordoned in the last round. It blocks like Group.
func (r *Records) Cordoned(ctx context.Context, provider string) (bool, error) {
	s, err := r.state(ctx)
	return slices.Contains(s.Cordoned, provider), err
}

func (r *Records) state(ctx context.Context) (state, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.read.IsZero() && time.Since(r.read) < recordsFor {
		return r.saved, r.err
	}
	bounded, cancel := context.WithTimeout(ctx, recordsWithin)
	defer cancel()
	document, err := r.Memory.Read(bounded)
	r.saved, r.err = state{}, nil
	if err == nil && len(document) > 0 {
		err = json.Unmarshal(document, &r.saved)
	}
	if err == nil {
		r.saved.positions, err = positionsOf(bounded, r.Positions)
		if errors.Is(err, errUnreadable) { // the observer's rounds log it
			err = nil
		}
	}
	if err != nil {
		r.saved, r.err = state{}, fmt.Errorf("read the records of the observer: %w", err)
	}
	if ctx.Err() == nil { // when one caller is cancelled, the next caller reads again
		r.read = time.Now()
	}
	return r.saved, r.err
}
