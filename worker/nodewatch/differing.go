package nodewatch

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
)

// Differing stores which Nodes differ from the template that Cluster Autoscaler received. The zero value is ready for
// use, and safe for concurrent use.
type Differing struct {
	mu    sync.Mutex
	nodes map[string]compared // by name
}

type compared struct {
	group   string
	differs []string
}

// Of returns for each group the number of its Nodes that differ: 0 if all Nodes match, and no entry for a group without
// Nodes.
func (d *Differing) Of() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := map[string]int{}
	for _, n := range d.nodes {
		of[n.group] += min(len(n.differs), 1)
	}
	return of
}

// Nodes returns the Nodes that differ, sorted by name.
func (d *Differing) Nodes() (nodes []market.DifferentNode) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(d.nodes)) {
		if n := d.nodes[name]; len(n.differs) > 0 {
			nodes = append(nodes, market.DifferentNode{Node: name, Group: n.group, Differs: strings.Join(n.differs, "; ")})
		}
	}
	return nodes
}

// Set replaces the stored differences of a Node.
func (d *Differing) Set(node, group string, differs []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nodes == nil {
		d.nodes = map[string]compared{}
	}
	d.nodes[node] = compared{group, differs}
}

func (d *Differing) drop(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.nodes, node)
}

// maxReported bounds the number of reported differences of one Node, because a user may change the Node's labels any
// number of times.
const maxReported = 50

// report logs each difference between the attempt's Node and its group's template once, and records it as an Event. It
// also updates Differing.
func (w *watch) report(name string, a attempt, log *slog.Logger) {
	f := a.found
	switch {
	case !f.Stamped || f.Terminating: // Cluster Autoscaler does not use this Node
		w.Differing.drop(name)
		return
	case !f.Ready: // the stored differences stay
		return
	}
	w.Differing.Set(name, f.Attempt.Group, f.Differs)
	var fresh []string
	for _, d := range f.Differs {
		if len(a.reported)+len(fresh) < maxReported && !slices.Contains(a.reported, d) {
			fresh = append(fresh, d)
		}
	}
	if len(fresh) == 0 {
		return
	}
	text := strings.Join(fresh, "; ")
	log.Warn("a node differs from Cluster Autoscaler's template", "node", name, "differences", text)
	if w.Events != nil {
		w.Events.Record(activities.Event{Reason: activities.ReasonNodeDiffers, Node: name,
			Message: "it differs from the template that Cluster Autoscaler received: " + text})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.attempts[name]; a != nil {
		a.reported = slices.Concat(a.reported, fresh)
	}
}
