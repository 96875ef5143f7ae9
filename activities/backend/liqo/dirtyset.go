package liqo

import (
	"maps"
	"slices"
	"sync"
)

// dirtySet is the names that something has happened to, each once, however often it happened.
type dirtySet struct {
	wake chan struct{} // holds a token while there are names

	mu    sync.Mutex
	names map[string]bool
}

func newDirtySet() *dirtySet {
	return &dirtySet{wake: make(chan struct{}, 1), names: map[string]bool{}}
}

func (d *dirtySet) add(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names[name] = true
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// take empties the set, in name order.
func (d *dirtySet) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := slices.Sorted(maps.Keys(d.names))
	clear(d.names)
	return names
}
