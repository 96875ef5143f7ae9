package observer_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
)

// The history of a group was reverted. The group receives the position that the last leader has saved, even when
// every process was restarted. It receives the position again until it has begun a new epoch.
func TestRevertedGroupReceivesItsSavedPosition(t *testing.T) {
	memory := observer.File(t.TempDir() + "/memory")
	synctest.Test(t, func(t *testing.T) {
		h := newHub().with(nil)
		at := func(epoch string, revision int64, booked int) {
			g := h.groups["a"]
			g.Epoch, g.Revision, g.Booked = epoch, revision, booked
			h.groups["a"] = g
		}
		seen := fleet.Position{Epoch: "t0", Revision: 20, Booked: 5}
		at("t0", 20, 5)
		observe := func(play func(next func() error)) {
			o := h.observer()
			o.Memory = memory
			leads(t, o, play)
		}
		observe(func(func() error) { require.Zero(t, h.rows["group/a"].Seen) })
		h.between(func() { at("t0", 11, 3) })
		time.Sleep(time.Hour) // the age of the record has no effect
		observe(func(next func() error) {
			for range 5 {
				require.Equal(t, seen, h.rows["group/a"].Seen)
				h.between(nil)
				require.NoError(t, next())
			}
			h.between(func() { at("t1", 1, 0) })
			require.NoError(t, next())
			h.between(nil)
			require.NoError(t, next())
			require.NotContains(t, h.told, "group/a")
		})
	})
}

// A pause and a cordon stay when their entities are lost, until an operator reverts them.
func TestPauseAndCordonSurviveLostEntities(t *testing.T) {
	memory := observer.File(t.TempDir() + "/memory")
	synctest.Test(t, func(t *testing.T) {
		h := newHub().with(nil)
		saved := func() (paused, known, cordoned bool) {
			r := &observer.Records{Memory: memory}
			g, known, err := r.Group(t.Context(), "a")
			require.NoError(t, err)
			cordoned, err = r.Cordoned(t.Context(), "milan")
			require.NoError(t, err)
			return g.Paused, known, cordoned
		}
		set := func(paused, recovering bool, cordoned time.Time) func() {
			return func() {
				g, p := h.groups["a"], h.providers["milan"]
				g.Paused, g.Recovering = paused, recovering
				p.Cordoned, p.Recovering = cordoned, recovering
				h.groups["a"], h.providers["milan"] = g, p
			}
		}
		is := func(paused, known, cordoned bool) {
			t.Helper()
			p, k, c := saved()
			require.Equal(t, []bool{paused, known, cordoned}, []bool{p, k, c})
		}
		// several runs five rounds, and one of these rounds lists Temporal's index.
		several := func(next func() error) {
			for range 5 {
				require.NoError(t, next())
			}
		}
		is(false, false, false)
		set(true, false, time.Now())()
		o := h.observer()
		o.Memory = memory
		leads(t, o, func(next func() error) {
			is(true, true, true)
			groups, providers := h.groups, h.providers
			h.between(func() { h.groups, h.providers = nil, nil }) // the entities were terminated
			several(next)
			is(true, true, true)
			h.between(func() { h.groups, h.providers = groups, providers })
			h.between(set(false, true, time.Time{})) // the entities run again and are recovering
			several(next)
			is(true, true, true)
			h.between(set(true, false, time.Now()))
			several(next)
			h.between(set(false, false, time.Time{}))
			several(next)
			is(false, true, false)
		})
	})
}

// When a document is too large for a ConfigMap, the observer saves it without the evidence. The records of the groups
// are kept.
func TestLargeRecordIsSavedWithoutEvidence(t *testing.T) {
	memory := observer.File(t.TempDir() + "/memory")
	synctest.Test(t, func(t *testing.T) {
		h := newHub().with(nil)
		g := h.groups["a"]
		g.Paused = true
		h.groups["a"] = g
		for n := range 3000 { // names longer than real ones
			h.peers = append(h.peers, fleet.Provider{ID: strings.Repeat("p", 500) + strconv.Itoa(n)})
		}
		o := h.observer()
		o.Memory = memory
		leads(t, o, func(func() error) {
			document, err := memory.Read(t.Context())
			require.NoError(t, err)
			require.Less(t, len(document), 1<<20)
			r, known, err := (&observer.Records{Memory: memory}).Group(t.Context(), "a")
			require.NoError(t, err)
			require.True(t, known)
			require.True(t, r.Paused)
		})
	})
}

// hanging is a Memory whose reads return only when their context ends.
type hanging struct {
	observer.Memory
	reads int
}

func (h *hanging) Read(ctx context.Context) ([]byte, error) {
	h.reads++
	<-ctx.Done()
	return nil, ctx.Err()
}

// The API server hangs, and a hundred scale-outs request a record. They share one read, and each receives the error of
// this read.
func TestHangingReadOfRecordsIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &hanging{}
		r, began := &observer.Records{Memory: memory}, time.Now()
		for range 100 {
			_, _, err := r.Group(t.Context(), "a")
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Equal(t, 1, memory.reads)
		time.Sleep(time.Second)
		_, err := r.Cordoned(t.Context(), "milan")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 2, memory.reads, "it is read again after a second")
	})
}
