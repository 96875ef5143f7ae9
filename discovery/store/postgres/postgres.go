// Package postgres opens a store.Store in PostgreSQL. Several discovery servers may share the database. They use the
// clock of the database.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/sqlstore"
)

// maxConnections bounds the number of connections of one server to the database. When all are in use, a request waits
// for a connection.
const maxConnections = 10

// Open connects to the database and migrates the schema. Servers that start at the same time migrate the schema one
// after the other. dsnFile is a file with a connection string, such as
// postgres://user:password@host/database?sslmode=verify-full. The store reads the file again for each connection,
// so that the password may change. If dsnFile is empty, the environment variables of libpq apply (PGHOST, PGPASSWORD
// and so on). Errors contain no password. The caller must close the store.
func Open(ctx context.Context, dsnFile string) (*sqlstore.Store, error) {
	config, err := read(dsnFile)
	if err != nil {
		return nil, err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 60)) // seconds, number of attempts
	if err != nil {
		return nil, fmt.Errorf("open offers database: %w", err)
	}
	db := stdlib.OpenDB(*config, stdlib.OptionBeforeConnect(func(_ context.Context, c *pgx.ConnConfig) error {
		fresh, err := read(dsnFile)
		if err == nil {
			*c = *fresh
		}
		return err
	}))
	db.SetMaxOpenConns(maxConnections)
	db.SetMaxIdleConns(maxConnections)
	db.SetConnMaxIdleTime(time.Minute)
	s, err := sqlstore.Open(ctx, db, sqlstore.Dialect{
		Migrations: "postgres", Name: goose.DialectPostgres, Goose: []goose.ProviderOption{goose.WithSessionLocker(locker)},
		Now:  "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000",
		Lock: "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open offers database in PostgreSQL: %w", err), db.Close())
	}
	return s, nil
}

// read reads the parameters of a connection from the file dsnFile and the environment.
func read(dsnFile string) (*pgx.ConnConfig, error) {
	dsn := ""
	if dsnFile != "" {
		raw, err := os.ReadFile(dsnFile)
		if err != nil {
			return nil, fmt.Errorf("read connection string: %w", err)
		}
		if dsn = strings.TrimSpace(string(raw)); dsn == "" {
			return nil, fmt.Errorf("read connection string: %s is empty", dsnFile)
		}
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil { // the cause may quote the password
		return nil, fmt.Errorf("read connection string: %s cannot be used; write it like "+
			"postgres://user:password@host:5432/database?sslmode=verify-full",
			cmp.Or(dsnFile, "the PG environment variables"))
	}
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, 3*time.Second)
	return config, nil
}
