package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	_ "modernc.org/sqlite" // the dev server's database

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// backupRestored restores a backup of Temporal in the middle of a burst of 20, while scale-outs, scale-ins and undos
// run. Every node that was Ready stays. Every booking after the backup is booked again or undone. The groups reach the
// sizes that CA wants.
func backupRestored(t *testing.T) {
	const before, more = 8, 20
	o := newScenario(t, wide(2, work, []class{{id: "std", budgets: "drain: 20s"}}, lender("sick", "std", 0.5, 50),
		lender("p1", "std", 1, 100), lender("p2", "std", 1, 100)))
	o.breaks("sick", sim.Knobs{Refuse: backend.StageSliceAuth, Hang: backend.StageSliceGone})
	o.grow("std", before)
	o.ready("std", before)
	first := o.instances("std")
	o.occupy(first[:4], true)
	o.occupy(first[4:], false)

	require.NoError(t, o.s.world.SetKnobs(o.ctx, "p2", sim.Knobs{Hang: backend.StageReady})) // until the backup exists
	o.grow("std", more)
	o.release("std", first[:2])
	o.ready("std", before-2+more/4)
	known := o.world().Consumer.Slices
	o.backup(workflows.TypeScaleOut, workflows.TypeScaleIn, workflows.TypeUndo)
	require.NoError(t, o.s.world.SetKnobs(o.ctx, "p2", sim.Knobs{}))
	o.grow("std", 2)
	o.release("std", first[2:4])
	o.pause(4 * time.Second)
	o.restore()
	o.mayUndo(known)

	o.ready("std", before-4+more+2)
	o.heals("sick")
	o.finish()
}

func (o *scenario) database() string { return filepath.Join(o.dir, "temporal.db") }

// backup waits until workflows of each of these types run. It then copies Temporal's database while the server uses it,
// so these workflows also run in the backup.
func (o *scenario) backup(underWay ...string) {
	o.t.Helper()
	path := o.database() + ".backup"
	o.until(fmt.Sprintf("a backup with %v under way", underWay), func(*sim.State) error {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := o.query(o.database(), func(db *sql.DB) error {
			_, err := db.ExecContext(o.ctx, "VACUUM INTO ?", path)
			return err
		}); err != nil {
			return err
		}
		return o.query(path, func(db *sql.DB) error { return runs(o.ctx, db, underWay) })
	})
	o.takesPlace("backup")
}

func (o *scenario) query(path string, do func(*sql.DB) error) error {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer db.Close()
	return do(db)
}

// runs returns an error if one of these types has no running workflow, according to the visibility table of the
// database.
func runs(ctx context.Context, db *sql.DB, types []string) error {
	for _, name := range types {
		n := 0
		const query = "SELECT count(*) FROM executions_visibility WHERE workflow_type_name = ? AND status = ?"
		row := db.QueryRowContext(ctx, query, name, enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
		if err := row.Scan(&n); err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("no %s runs", name)
		}
	}
	return nil
}

// restore replaces the database with the backup. CA then knows more bookings than Temporal.
func (o *scenario) restore() {
	o.t.Helper()
	o.s.temporal.kill()
	for _, left := range []string{"-wal", "-shm", ""} {
		if err := os.Remove(o.database() + left); err != nil {
			require.ErrorIs(o.t, err, os.ErrNotExist)
		}
	}
	require.NoError(o.t, os.Rename(o.database()+".backup", o.database()))
	for group := range o.s.groups {
		o.m.ending(group)
	}
	o.takesPlace("restore")
	o.revives()
}

// mayUndo records the attempts that the product may undo although their providers are healthy. The backup does not know
// these attempts, and their Nodes had no instance id yet. A group adopts only a stamped Node (docs/operations.md).
func (o *scenario) mayUndo(known map[string]*sim.Slice) {
	w := o.world()
	for name := range w.Consumer.Slices {
		node := w.Consumer.Nodes[name]
		if known[name] == nil && (node == nil || node.Spec.ProviderID == "") {
			o.unknown[name] = true
		}
	}
	o.m.note("test", "may be undone: %v", slices.Sorted(maps.Keys(o.unknown)))
}

// takesPlace logs an event, with the numbers of objects in the simulated world.
func (o *scenario) takesPlace(what string) {
	o.t.Helper()
	w := o.world()
	text := fmt.Sprintf("%s: %+v", what, w.Counts())
	o.m.note("test", "%s", text)
	o.t.Logf("after %.1fs %s", time.Since(o.began).Seconds(), text)
}
