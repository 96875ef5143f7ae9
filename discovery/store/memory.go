package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Memory is a Store that forgets when the process ends.
type Memory struct {
	mu      sync.Mutex
	records map[string]Record
}

// NewMemory is an empty Memory.
func NewMemory() *Memory { return &Memory{records: map[string]Record{}} }

var _ Store = (*Memory)(nil)

// Put implements Store.
func (m *Memory) Put(_ context.Context, record Record, now time.Time) (bool, error) {
	record, err := clone(record)
	if err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old, exists := m.live(record.Offer.Name, now)
	if exists && old.Writer != record.Writer {
		return false, fmt.Errorf("put offer %s: %w", record.Offer.Name, ErrOwned)
	}
	if !exists {
		n := 0
		for _, r := range m.records {
			if r.Writer == record.Writer && !r.expired(now) {
				n++
			}
		}
		if n >= MaxPerWriter {
			return false, fmt.Errorf("put offer %s: %w: %s has %d", record.Offer.Name, ErrFull, record.Writer, n)
		}
	}
	m.records[record.Offer.Name] = record
	return !exists, nil
}

// Get implements Store.
func (m *Memory) Get(_ context.Context, name string, now time.Time) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.live(name, now)
	if !ok {
		return Record{}, fmt.Errorf("get offer %s: %w", name, ErrNotFound)
	}
	return clone(r)
}

// List implements Store.
func (m *Memory) List(_ context.Context, after string, limit int, now time.Time) ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Record
	for _, name := range slices.Sorted(maps.Keys(m.records)) {
		if len(out) >= limit {
			break
		}
		r, ok := m.live(name, now)
		if !ok || name <= after {
			continue
		}
		r, err := clone(r)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// Delete implements Store.
func (m *Memory) Delete(_ context.Context, name, writer string, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.live(name, now); ok && r.Writer != writer {
		return fmt.Errorf("delete offer %s: %w", name, ErrOwned)
	}
	delete(m.records, name)
	return nil
}

// Sweep implements Store.
func (m *Memory) Sweep(_ context.Context, now time.Time) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.records)
	maps.DeleteFunc(m.records, func(_ string, r Record) bool { return r.expired(now) })
	return before - len(m.records), nil
}

func (m *Memory) live(name string, now time.Time) (Record, bool) {
	r, ok := m.records[name]
	if !ok || r.expired(now) {
		return Record{}, false
	}
	return r, true
}

func (r Record) expired(now time.Time) bool {
	return r.Offer.Expires != nil && !now.Before(*r.Offer.Expires)
}

// clone goes through JSON: what a durable store would give back is what this one gives back.
func clone(r Record) (Record, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return Record{}, fmt.Errorf("copy offer %s: %w", r.Offer.Name, err)
	}
	var out Record
	if err := json.Unmarshal(raw, &out); err != nil {
		return Record{}, fmt.Errorf("copy offer %s: %w", r.Offer.Name, err)
	}
	return out, nil
}
