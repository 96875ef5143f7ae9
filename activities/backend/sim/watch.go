package sim

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Watch reports changes on the consumer, see backend.Watcher. It reads the world at the interval Options.Poll, and
// compares only changed objects. After a read of the world has failed, Watch reports every attempt again.
func (b *Backend) Watch(ctx context.Context, handle func(fleet.Found)) error {
	reported := map[string]reportedAttempt{}
	last, gap := int64(0), true
	for {
		news, version, err := b.news(ctx, last, reported, gap)
		switch {
		case ctx.Err() != nil:
			return wait.Err(ctx)
		case err != nil:
			gap = true
		default:
			last, gap = version, false
		}
		for _, f := range news {
			handle(f)
		}
		if !wait.For(ctx, b.opts.Poll) {
			return wait.Err(ctx)
		}
	}
}

// reportedAttempt is the reported state of an attempt. The Node's UID distinguishes a Node from a later Node of the
// same name.
type reportedAttempt struct {
	found fleet.Found
	node  types.UID
}

// news runs the virtual kubelets and returns the attempts that differ from the reported state. If the parameter all
// is true, it returns every attempt.
func (b *Backend) news(
	ctx context.Context, last int64, reported map[string]reportedAttempt, all bool,
) (news []fleet.Found, version int64, err error) {
	if err := b.world.runKubelets(ctx); err != nil {
		return nil, 0, err
	}
	version, err = b.world.view(func(s *State) {
		names := b.world.touchedSince(last, reported)
		if all || names == nil {
			names = slices.AppendSeq(s.names(), maps.Keys(reported)) // reported attempts may have no objects any longer
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			before, known := reported[name]
			f, exists := b.find(s, name)
			switch {
			case exists:
				now := reportedAttempt{found: f}
				if node := s.Consumer.Nodes[name]; node != nil {
					now.node = node.UID
				}
				if all || !known || !reflect.DeepEqual(before, now) {
					reported[name] = now
					news = append(news, f)
				}
			case known:
				delete(reported, name)
				news = append(news, fleet.Found{Attempt: before.found.Attempt})
			}
		}
	})
	return news, version, err
}

// touchedSince returns the names of the objects that have changed since the version. After a change of a peering it
// also returns the reported attempts on its provider, because their credentials come from the peering. It returns nil
// when any object may have changed. The caller must have locked mu.
func (w *World) touchedSince(version int64, reported map[string]reportedAttempt) []string {
	if w.readFrom > version {
		return nil
	}
	names, peerings := []string{}, map[string]bool{}
	for key, at := range w.touched {
		if at <= version {
			continue
		}
		kind, name, _ := strings.Cut(key, "/")
		if kind == "peering" {
			peerings[name] = true
			continue
		}
		names = append(names, name)
	}
	if len(peerings) == 0 {
		return names
	}
	for name, r := range reported {
		if peerings[r.found.Attempt.Provider.ID] {
			names = append(names, name)
		}
	}
	return names
}
