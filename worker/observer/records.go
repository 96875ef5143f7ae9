package observer

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// forgottenAfter is how long a group may be absent before its record is removed.
const forgottenAfter = 30 * 24 * time.Hour

// record is the saved data of a group.
type record struct {
	fleet.GroupRecord
	At time.Time `json:"at"` // of the last round that read the group, by that worker's clock
}

// books updates the records with the groups and providers that a round has read. A position only rises, so that a
// reverted history of a group is noticed, even after a restart of all processes. The pause of a recovering group is not
// known yet: the record keeps the value that the recovery will restore.
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

// recordsFor is the time for which Records serves the data of one read. It is shorter than the start of Temporal,
// because Join compares a group's history with the records before it creates objects, even right after a backup was
// restored.
const recordsFor = time.Second

// recordsWithin limits the time of one read, because many scale-outs wait for it.
const recordsWithin = 2 * time.Second

// Records reads the saved data of the rounds, in any worker. It implements activities.Records.
type Records struct {
	Memory Memory
	// Costs is the Memory with the groups' bills.
	Costs Memory

	mu    sync.Mutex
	saved state
	err   error
	read  time.Time
}

// Group returns the record of a group; known is false when no round has saved one. It reads the document at most
// once a second, and a read takes two seconds at most. The error of a read is returned for a second, too.
func (r *Records) Group(ctx context.Context, name string) (saved fleet.GroupRecord, known bool, err error) {
	s, err := r.state(ctx)
	one, known := s.Records[name]
	return one.GroupRecord, known, err
}

// Bill returns the last saved bill of a group; known is false when no round has saved one. In the bill of an ended
// group Ended is true. Bill reads the document.
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

// Cordoned reports whether the provider was cordoned in the last round.
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
	if err != nil {
		r.saved, r.err = state{}, fmt.Errorf("read the records of the observer: %w", err)
	}
	if ctx.Err() == nil { // when one caller is cancelled, the next caller reads again
		r.read = time.Now()
	}
	return r.saved, r.err
}
