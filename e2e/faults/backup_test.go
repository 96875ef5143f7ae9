package faults

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // to change Temporal's file
)

// restores are the parts in which a backup of Temporal's database is restored. The backup is from five moments, and the
// processes of the hub either run on or are restarted.
var restores = func() (all []part) {
	for _, m := range []moment{
		{"before the first node", 0, func(*stack) {}, 3, 3},
		{"nodes at rest", 3, func(*stack) {}, 5, 5},
		{"scale-outs under way", 2, func(s *stack) {
			require.NoError(s.t, s.ca.Grow(3))
			s.ca.Until(limit, "slices are being created", func() error { return more(s.slices(), 2) })
		}, 5, 2},
		{"releases under way", 5, func(s *stack) {
			seen, err := s.ca.Look()
			require.NoError(s.t, err)
			require.NoError(s.t, s.ca.Remove(seen.Listed[:3]))
		}, 2, 2},
		{"later releases", 3, func(*stack) {}, 3, 0},
	} {
		for _, restarted := range []bool{false, true} {
			name := "backup of " + m.name
			if restarted {
				name += ", processes restarted"
			}
			all = append(all, part{name, func(s *stack) { m.run(s, restarted) }})
		}
	}
	return append(all, part{"visibility rows lost", visibilityLost})
}()

// moment describes a restored backup. The group first has some nodes. Then begin starts a change, and the backup is
// made. Before the backup is restored, the group reaches the number of nodes next, and then the number later, for which
// the newest nodes are released.
type moment struct {
	name        string
	first       int
	begin       func(*stack)
	next, later int
}

func (m moment) run(s *stack, restarted bool) {
	s.rest(m.first, nil)
	first := s.nodes()
	m.begin(s)
	s.temporal.Kill()
	s.copyDatabase("temporal.db", "backup.db")
	s.startTemporal()
	s.rest(m.next, nil)
	if m.later > 0 && m.later < m.next {
		s.rest(m.later, first)
	} else {
		s.rest(m.later, nil)
	}
	kept := s.nodes()
	require.Len(s.t, kept, m.later)
	s.temporal.Kill()
	if restarted {
		s.killAll()
	}
	s.copyDatabase("backup.db", "temporal.db")
	s.startTemporal()
	if restarted {
		s.startAll()
	}
	s.rest(m.later, kept)
	s.rest(m.later+1, kept) // the group grows again
	s.rest(0, nil)
}

// copyDatabase replaces the files of one database by the files of the other. A killed SQLite leaves its unfinished
// changes in files of their own, which belong to the copy. SQLite would apply such a file to another database, too.
func (s *stack) copyDatabase(from, to string) {
	s.t.Helper()
	for _, suffix := range []string{"", "-journal", "-wal", "-shm"} {
		require.NoError(s.t, copyFile(s.dir+"/"+from+suffix, s.dir+"/"+to+suffix))
	}
}

// copyFile copies a file. If the source does not exist, it removes the target.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return os.RemoveAll(to)
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func more(n, than int) error {
	if n <= than {
		return fmt.Errorf("%d, not more than %d", n, than)
	}
	return nil
}

// visibilityLost removes all rows of Temporal's visibility store, which lists the workflows. The group, its nodes and
// the death of a provider are found by their ids, and `status` shows the group.
func visibilityLost(s *stack) {
	s.rest(3, nil)
	kept := s.nodes()
	s.temporal.Kill()
	s.killAll()
	db, err := sql.Open("sqlite", s.database())
	require.NoError(s.t, err)
	result, err := db.ExecContext(s.t.Context(), "DELETE FROM executions_visibility")
	require.NoError(s.t, err)
	rows, err := result.RowsAffected()
	require.NoError(s.t, err)
	require.Positive(s.t, rows)
	require.NoError(s.t, db.Close())
	s.startTemporal()
	s.startAll()
	s.rest(3, kept)
	out := s.run("status")
	for id := range kept {
		require.Contains(s.t, out, id[len("liqo://std/"):])
	}
	s.dies("milan", 3)
}
