package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

// migrations contains one folder for each dialect. Migrations that exist must never be changed.
//
//go:embed migrations
var migrations embed.FS

// Dialect contains the settings in which databases differ.
type Dialect struct {
	// Migrations is the name of the folder in migrations. Name and Goose configure the library goose, which runs the
	// migrations.
	Migrations string
	Name       goose.Dialect
	Goose      []goose.ProviderOption
	// Now is a query for the time in Unix nanoseconds. If it is "", the store uses the clock of this machine.
	Now string
	// Lock is a statement after which no other transaction of the writer $1 runs until this transaction ends. It is
	// "" if the database serializes all writes.
	Lock string
}

// Open migrates the schema to the newest version. It returns an error if the schema is newer than this program.
// Store.Close closes the database. If Open returns an error, the caller must close the database.
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
		return nil, fmt.Errorf("its schema has version %d, but this program knows versions up to %d; use a newer program",
			found, known)
	}
	return &Store{db: db, dialect: dialect}, nil
}
