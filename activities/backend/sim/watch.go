package sim

import (
	"context"
	"reflect"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// Watch tells what happens on the consumer, see backend.Watcher. It looks every Options.Poll and reads no more than the
// file's first bytes while the world does not change. A world that cannot be read is a gap: after it all is told again.
func (b *Backend) Watch(ctx context.Context, handle func(backend.Found)) error {
	var last *State
	told := map[string]backend.Found{}
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

// look is the world after the virtual kubelets had their say; the same pointer as before when nothing has changed.
func (b *Backend) look(ctx context.Context) (*State, error) {
	if err := b.world.runKubelets(ctx); err != nil {
		return nil, err
	}
	return b.world.Snapshot()
}

// tell tells what differs from what was told, or all of it.
func (b *Backend) tell(s *State, told map[string]backend.Found, all bool, handle func(backend.Found)) {
	now := map[string]backend.Found{}
	for _, f := range b.list(s, "") {
		name := f.Attempt.ObjectName()
		now[name] = f
		before, known := told[name]
		told[name] = f
		if all || !known || !reflect.DeepEqual(before, f) {
			handle(f)
		}
	}
	for name, f := range told {
		if _, there := now[name]; !there {
			delete(told, name)
			handle(backend.Found{Attempt: f.Attempt})
		}
	}
}
