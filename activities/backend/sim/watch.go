package sim

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// Watch tells what happens on the consumer, see backend.Watcher. It looks every Options.Poll and reads no more than the
// file's first bytes while the world does not change. A world that cannot be read is a gap: after it all is told again.
func (b *Backend) Watch(ctx context.Context, handle func(backend.Found)) error {
	var last *State
	told := map[string]sight{}
	gap := true
	for {
		s, err := b.look(ctx)
		switch {
		case ctx.Err() != nil:
			return contextError(ctx)
		case err != nil:
			gap = true
		case s != last || gap:
			b.tell(s, told, gap, handle)
			last, gap = s, false
		}
		if !pause(ctx, b.opts.Poll) {
			return contextError(ctx)
		}
	}
}

// sight is what is known of an attempt. Two Nodes of the same look are two: one was deleted and is there anew.
type sight struct {
	found backend.Found
	node  types.UID
}

// look is the world after the virtual kubelets had their say; the same pointer as before when nothing has changed.
func (b *Backend) look(ctx context.Context) (*State, error) {
	if err := b.world.runKubelets(ctx); err != nil {
		return nil, err
	}
	return b.world.Snapshot()
}

// tell tells what differs from what was told, or all of it.
func (b *Backend) tell(s *State, told map[string]sight, all bool, handle func(backend.Found)) {
	now := map[string]bool{}
	for _, f := range b.list(s, "") {
		name := f.Attempt.ObjectName()
		seen := sight{found: f}
		if node := s.Consumer.Nodes[name]; node != nil {
			seen.node = node.UID
		}
		before, known := told[name]
		now[name], told[name] = true, seen
		if all || !known || !reflect.DeepEqual(before, seen) {
			handle(f)
		}
	}
	for name, before := range told {
		if !now[name] {
			delete(told, name)
			handle(backend.Found{Attempt: before.found.Attempt})
		}
	}
}
