package observer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Shared is a document that several processes change.
type Shared interface {
	// Read returns the document, or nil if no document exists. It writes nothing.
	Read(ctx context.Context) (document []byte, err error)
	// Change replaces the document with the result of the function edit. If another process has changed the document
	// since edit received it, Change calls edit again.
	Change(ctx context.Context, edit func(document []byte) []byte) error
}

// positions contains a position of each group that has released an instance since the observer last saved its records.
// Its keys are the names of the groups.
type positions map[string]fleet.Position

// errUnreadable reports that the document of positions cannot be decoded. Only a person can have changed it. It counts
// as empty, because otherwise no scale-out could continue until the next release.
var errUnreadable = errors.New("the document cannot be decoded and counts as empty; the next release replaces it")

// positionsOf reads the positions. A nil document has none. The error is errUnreadable, or the document cannot be read.
func positionsOf(ctx context.Context, from Shared) (positions, error) {
	if from == nil {
		return nil, nil
	}
	document, err := from.Read(ctx)
	if err != nil {
		return nil, err
	}
	return readPositions(document)
}

// readPositions decodes the document of positions. With the error errUnreadable it returns no positions.
func readPositions(document []byte) (positions, error) {
	all := positions{}
	if len(document) == 0 {
		return all, nil
	}
	if err := json.Unmarshal(document, &all); err != nil {
		return positions{}, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return all, nil
}

// addAll adds positions. It keeps the stored position of a group that is behind this position now: the group has lost a
// part of its history.
func (p positions) addAll(more positions) {
	for group, at := range more {
		if !at.Behind(p[group]) {
			p[group] = at
		}
	}
}

// savesWithin limits the duration of one Save, because the other commands of the same batch wait for it.
const savesWithin = 2 * time.Second

// Save implements activities.Records. It blocks until the position is stored in the consumer cluster, for at most two
// seconds. Calls that run concurrently are stored together. Save removes the positions that the observer's records
// already include.
func (r *Records) Save(ctx context.Context, group string, at fleet.Position) error {
	if r.Positions == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, savesWithin)
	defer cancel()
	r.start.Do(func() { r.saving = semaphore.NewWeighted(1) })
	r.queue(positions{group: at})
	if err := r.saving.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("save the position of node group %s: wait for another save: %w", group, err)
	}
	defer r.saving.Release(1)
	batch := r.queued()
	if len(batch) == 0 {
		return nil // another call has stored it
	}
	saved, err := r.state(ctx)
	if err == nil {
		err = r.Positions.Change(ctx, func(document []byte) []byte {
			all, _ := readPositions(document) // an unreadable document is replaced; the observer's rounds log it
			maps.DeleteFunc(all, func(group string, at fleet.Position) bool {
				known, found := saved.Records[group]
				return found && !known.Position.Behind(at)
			})
			all.addAll(batch)
			edited, _ := json.Marshal(all) // never fails for texts and numbers
			return edited
		})
	}
	if err != nil {
		r.queue(batch)
		return fmt.Errorf("save the position of node group %s: %w", group, err)
	}
	return nil
}

// queue adds positions to the positions that the next write stores.
func (r *Records) queue(more positions) {
	r.turn.Lock()
	defer r.turn.Unlock()
	if r.waiting == nil {
		r.waiting = positions{}
	}
	r.waiting.addAll(more)
}

// queued removes the queued positions, and returns them.
func (r *Records) queued() positions {
	r.turn.Lock()
	defer r.turn.Unlock()
	all := r.waiting
	r.waiting = nil
	return all
}

// include raises the records to the positions that groups have saved since the last round.
func (s *state) include(saved positions, now time.Time) {
	for group, at := range saved {
		r, known := s.Records[group]
		if known && (at.Behind(r.Position) || at == r.Position) {
			continue
		}
		if s.Records == nil {
			s.Records = map[string]record{}
		}
		r.Position, r.At = at, now
		s.Records[group] = r
	}
}
