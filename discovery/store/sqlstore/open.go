package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

// migrations are one folder for each dialect; they are only ever added to.
//
//go:embed migrations
var migrations embed.FS

// Dialect is in what databases differ.
type Dialect struct {
	// Migrations is the folder in migrations, and Goose are what their runner needs.
	Migrations string
	Name       goose.Dialect
	Goose      []goose.ProviderOption
	// Now is a query for the time in Unix nanoseconds; "" where the clock of this machine is the one to go by.
	Now string
	// Lock is a statement that has the writes of the writer $1 wait for each other; "" where all writes do.
	Lock string
}

// Open brings the schema to the newest version, and refuses one that is newer than this program. Close the store, which
// closes the database; after an error that is the caller's to do.
func Open(ctx context.Context, db *sql.DB, dialect Dialect) (*Store, error) {
	files, err := fs.Sub(migrations, "migrations/"+dialect.Migrations)
	if err != nil {
		return nil, err
	}
	options := append(dialect.Goose, goose.WithDisableGlobalRegistry(true))
	steps, err := goose.NewProvider(dialect.Name, db, files, options...)
	if err != nil {
		return nil, err
	}
	if _, err := steps.Up(ctx); err != nil {
		return nil, fmt.Errorf("migrate the schema: %w", err)
	}
	found, known, err := steps.GetVersions(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the version of the schema: %w", err)
	}
	if found > known {
		return nil, fmt.Errorf("its schema is version %d, this program knows up to %d; use a newer program", found, known)
	}
	return &Store{db: db, dialect: dialect}, nil
}
