package sim

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Several Worlds with the same file write concurrently, and no change is lost. A reader sees only complete states of
// the world, in the order of the changes.
func TestEditIsAtomic(t *testing.T) {
	const writers, edits = 4, 50
	path := filepath.Join(t.TempDir(), "world.json")
	reader := open(t, path, Delays{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	var group sync.WaitGroup
	for i := range writers {
		w, err := Open(path)
		require.NoError(t, err)
		group.Go(func() {
			for j := range edits {
				id := strconv.Itoa(i) + "-" + strconv.Itoa(j)
				if err := w.AddProvider(ctx, id, nil); err != nil {
					t.Errorf("add provider %s: %v", id, err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	last, seen := int64(0), 0
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		s, err := reader.Snapshot()
		require.NoError(t, err)
		require.GreaterOrEqual(t, s.Revision, last)
		require.GreaterOrEqual(t, len(s.Providers), seen)
		last, seen = s.Revision, len(s.Providers)
	}
	require.Equal(t, writers*edits, seen)
}

// A change that fails, or that changes nothing, does not write the file.
func TestEditWritesOnlyChanges(t *testing.T) {
	w := open(t, filepath.Join(t.TempDir(), "world.json"), Delays{})
	before, err := os.ReadFile(w.Path())
	require.NoError(t, err)
	require.NoError(t, w.SetDelays(t.Context(), Delays{}))
	require.Error(t, w.PutPod(t.Context(), "nobody", Pod{Name: "pod"}))
	after, err := os.ReadFile(w.Path())
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}

// A call that waits for a lock of another process returns when its context ends.
func TestLockWaitEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "world.json")
	holder, waiter := open(t, path, Delays{}), open(t, path, Delays{})
	unlock, err := holder.lock(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, waiter.AddProvider(ctx, "one", nil), context.DeadlineExceeded)
	unlock()
	require.NoError(t, waiter.AddProvider(t.Context(), "one", nil))
}

// A file that is not a world is reported, and stays unchanged.
func TestFileThatIsNoWorldIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "world.json")
	require.NoError(t, os.WriteFile(path, []byte("my diary"), 0o600))
	_, err := Open(path)
	require.ErrorContains(t, err, "not a simulated world")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "my diary", string(content))
}

// A world is replaced by a new world with the same path and the same revision. The cache does not return the old
// world.
func TestCacheIgnoresAReplacedWorld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "world.json")
	w := open(t, path, Delays{})
	first, err := w.Snapshot()
	require.NoError(t, err)
	again, err := w.Snapshot()
	require.NoError(t, err)
	require.Same(t, first, again, "read once")
	require.NoError(t, os.Remove(path))
	open(t, path, Delays{})
	second, err := w.Snapshot()
	require.NoError(t, err)
	require.Equal(t, first.Revision, second.Revision)
	require.NotEqual(t, first.World, second.World)
}

// A backend makes and removes a peering and a node. After each of its writes, the state in its memory equals the
// file. This shows that each method of the backend changes only objects whose keys it names, and that a rewritten
// file contains every object.
func TestMemoryEqualsTheFile(t *testing.T) {
	w := open(t, filepath.Join(t.TempDir(), "world.json"), Delays{})
	w.compactBeyond = -10_000
	writes, anew, first := 0, 0, int64(0)
	p := provider(t, w, "one")
	other, err := Open(w.path) // it follows each write
	require.NoError(t, err)
	w.Intercept(func(_ []byte, write func() error) error {
		if writes++; w.first != first {
			anew, first = anew+1, w.first
		}
		fresh := &World{path: w.path, touched: map[string]int64{}} // Open would wait for the lock
		require.NoError(t, fresh.refresh())
		want, err := json.Marshal(fresh.state)
		require.NoError(t, err)
		got, err := json.Marshal(w.state)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got))
		return write()
	})
	life(t, w, p)
	require.Greater(t, writes, 15)
	require.Greater(t, anew, 2, "the file was not written again as a whole")
	require.Zero(t, counts(t, other))
}

// A change wakes only the waiters for the changed objects.
func TestChangesWakeOnlyTheirWaiters(t *testing.T) {
	w := open(t, filepath.Join(t.TempDir(), "world.json"), Delays{})
	one, two := []string{"provider/one"}, []string{"provider/two"}
	provider(t, w, "one")
	seen, _, woken, err := w.changed(0, one, time.Millisecond)
	require.NoError(t, err)
	other, err := Open(w.path)
	require.NoError(t, err)
	require.NoError(t, other.AddProvider(t.Context(), "two", nil))
	<-woken
	_, yes, _, err := w.changed(seen, one, time.Millisecond)
	require.NoError(t, err)
	require.False(t, yes)
	_, yes, _, err = w.changed(seen, two, time.Millisecond)
	require.NoError(t, err)
	require.True(t, yes)
}
