package observer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
)

// A group saves the position of a release between two rounds, and is then restored from a backup without the release.
// Every worker learns the position at its next read, and the next round sends it to the group.
func TestReleaseBetweenTwoRoundsIsRemembered(t *testing.T) {
	dir := t.TempDir()
	memory, document := observer.File(dir+"/memory"), observer.File(dir+"/positions")
	synctest.Test(t, func(t *testing.T) {
		h := newHub().with(nil)
		at := func(p fleet.Position) {
			g := h.groups["a"]
			g.Epoch, g.Revision, g.Booked, g.Released = p.Epoch, p.Revision, p.Booked, p.Released
			h.groups["a"] = g
		}
		backup := fleet.Position{Epoch: "t0", Revision: 20, Booked: 5}
		release := fleet.Position{Epoch: "t0", Revision: 24, Booked: 5, Released: 1}
		at(backup)
		o := h.observer()
		o.Memory, o.Positions = memory, document
		leads(t, o, func(next func() error) {
			require.Zero(t, h.rows["group/a"].Seen)
			r := &observer.Records{Memory: memory, Positions: document}
			require.NoError(t, r.Save(t.Context(), "a", release))
			require.NoError(t, r.Save(t.Context(), "a", backup), "a restored group does not lower the position")
			other := &observer.Records{Memory: memory, Positions: document}
			saved, known, err := other.Group(t.Context(), "a")
			require.NoError(t, err)
			require.True(t, known)
			require.Equal(t, release, saved.Position)

			resumed := backup
			resumed.Revision = 30
			h.between(func() { at(resumed) })
			require.NoError(t, next())
			require.Equal(t, release, h.rows["group/a"].Seen)

			time.Sleep(2 * time.Second) // the round has saved the position in its own document
			require.NoError(t, other.Save(t.Context(), "b", fleet.Position{Epoch: "t0", Revision: 1}))
			text, err := document.Read(t.Context())
			require.NoError(t, err)
			require.JSONEq(t, `{"b": {"epoch": "t0", "revision": 1}}`, string(text), "only new positions are kept")
			saved, _, err = (&observer.Records{Memory: memory, Positions: document}).Group(t.Context(), "a")
			require.NoError(t, err)
			require.Equal(t, release, saved.Position)
		})
	})
}

// counted is a Shared that counts its changes. A change takes half a second, and fails if fails returns an error.
type counted struct {
	observer.File
	fails func() error
	mu    sync.Mutex
	n     int
}

func (c *counted) Change(ctx context.Context, edit func([]byte) []byte) error {
	if !wait.For(ctx, time.Second/2) {
		return ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	if err := c.fails(); err != nil {
		return err
	}
	document, err := c.Read(ctx)
	if err != nil {
		return err
	}
	return c.File.Save(ctx, edit(document))
}

// A hundred groups release instances at the same time. Their positions are saved with two writes. When the API server
// does not answer, every call fails within two seconds, and a later call saves all positions.
func TestConcurrentSavesShareAWrite(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var failure error
		document := &counted{File: observer.File(dir + "/positions"), fails: func() error { return failure }}
		r := &observer.Records{Memory: observer.File(dir + "/memory"), Positions: document}
		all := func(revision int64) (failed int) {
			var calls sync.WaitGroup
			errs := make([]error, 100)
			for n := range errs {
				calls.Go(func() {
					errs[n] = r.Save(t.Context(), fmt.Sprint("group-", n), fleet.Position{Epoch: "t0", Revision: revision})
				})
			}
			calls.Wait()
			for _, err := range errs {
				if err != nil {
					failed++
				}
			}
			return failed
		}
		revision := func() int64 {
			saved, _, err := (&observer.Records{Memory: r.Memory, Positions: document}).Group(t.Context(), "group-99")
			require.NoError(t, err)
			return saved.Revision
		}
		require.Zero(t, all(1))
		require.Equal(t, int64(1), revision())
		require.LessOrEqual(t, document.n, 2)
		failure = errors.New("the API server does not answer")
		began := time.Now()
		require.Equal(t, 100, all(2))
		require.LessOrEqual(t, time.Since(began), 2*time.Second)
		require.Equal(t, int64(1), revision())
		failure = nil
		require.NoError(t, r.Save(t.Context(), "another", fleet.Position{Epoch: "t0", Revision: 1}))
		require.Equal(t, int64(2), revision())
	})
}

// A document that a person has made unreadable counts as empty, so that scale-outs continue.
func TestUnreadablePositionsAreIgnored(t *testing.T) {
	dir := t.TempDir()
	document := observer.File(dir + "/positions")
	require.NoError(t, document.Save(t.Context(), []byte("no JSON")))
	r := &observer.Records{Memory: observer.File(dir + "/memory"), Positions: document}
	saved, known, err := r.Group(t.Context(), "a")
	require.NoError(t, err)
	require.False(t, known)
	require.Zero(t, saved)
	at := fleet.Position{Epoch: "t0", Revision: 1}
	require.NoError(t, r.Save(t.Context(), "a", at))
	saved, _, err = (&observer.Records{Memory: r.Memory, Positions: document}).Group(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, at, saved.Position)
}

// The rounds report a document that cannot be decoded, and continue.
func TestUnreadablePositionsAreLogged(t *testing.T) {
	dir := t.TempDir()
	document := observer.File(dir + "/positions")
	require.NoError(t, document.Save(t.Context(), []byte("no JSON")))
	synctest.Test(t, func(t *testing.T) {
		o := newHub().with(nil).observer()
		var log bytes.Buffer
		o.Memory, o.Positions, o.Logger = observer.File(dir+"/memory"), document, slog.New(slog.NewTextHandler(&log, nil))
		leads(t, o, func(next func() error) { require.NoError(t, next()) })
		require.Contains(t, log.String(), "the document cannot be decoded and counts as empty")
	})
}

// Many processes change one document of the simulated world. No change is lost.
func TestChangesOfAFileExcludeEachOther(t *testing.T) {
	path := t.TempDir() + "/positions"
	var calls sync.WaitGroup
	for n := range 20 {
		calls.Go(func() {
			r := &observer.Records{Memory: observer.File(path + ".memory"), Positions: observer.File(path)}
			require.NoError(t, r.Save(t.Context(), fmt.Sprint("group-", n), fleet.Position{Epoch: "t0", Revision: 1}))
		})
	}
	calls.Wait()
	r := &observer.Records{Memory: observer.File(path + ".memory"), Positions: observer.File(path)}
	for n := range 20 {
		saved, _, err := r.Group(t.Context(), fmt.Sprint("group-", n))
		require.NoError(t, err)
		require.Equal(t, int64(1), saved.Revision)
	}
}
