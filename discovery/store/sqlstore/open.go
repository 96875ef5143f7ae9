package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

// migrations contains one folder for each dialect. Existing migrations never change.
//
//go:embed migrations
var migrations embed.FS

// Dialect holds the differences between databases.
type Dialect struct {
	// Migrations is the folder in migrations; Name and Goose configure the migration runner.
	Migrations string
	Name       goose.Dialect
	Goose      []goose.ProviderOption
	// Now is a query for the time in Unix nanoseconds; "" selects the clock of this machine.
	Now string
	// Lock is a statement that serializes the writes of the writer $1; "" if the database serializes all writes.
	Lock string
}

// Open migrates the schema to the newest version, and refuses a schema that is newer than this program. Closing the
// store closes the database; after an error the caller must close the database.
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
