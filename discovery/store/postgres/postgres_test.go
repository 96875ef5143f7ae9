package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/postgres"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/sqlstore"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	kit "github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/postgres"
)

func open(t *testing.T, dsn string) *sqlstore.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), dsnFile(t, dsn))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func dsnFile(t *testing.T, dsn string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dsn")
	require.NoError(t, os.WriteFile(path, []byte(dsn+"\n"), 0o600))
	return path
}

func TestPostgresFulfilsTheContract(t *testing.T) {
	testkit.Slow(t)
	server := kit.New(t)
	databases := 0
	database := func(t *testing.T) string {
		databases++
		name := fmt.Sprintf("d%d", databases)
		server.Query(t, "postgres", "CREATE DATABASE "+name+
			" TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C'") // this locale does not order names as bytes
		return name
	}
	t.Run("contract", func(t *testing.T) {
		storetest.Contract(t, func(t *testing.T) (first, second store.Store) {
			dsn := server.DSN(database(t))
			return open(t, dsn), open(t, dsn)
		})
	})
	t.Run("clock", func(t *testing.T) { theDatabasesClock(t, server, database(t)) })
	t.Run("servers that start together", func(t *testing.T) { startTogether(t, server.DSN(database(t))) })
	t.Run("newer schema", func(t *testing.T) {
		name := database(t)
		open(t, server.DSN(name))
		server.Query(t, name, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, true)")
		_, err := postgres.Open(t.Context(), dsnFile(t, server.DSN(name)))
		require.ErrorContains(t, err, "its schema has version 99")
	})
	t.Run("another password", func(t *testing.T) { theFileIsReadAgain(t, server, database(t)) })
	t.Run("killed", func(t *testing.T) { killed(t, server, database(t)) })
}

// theDatabasesClock replaces PostgreSQL's own clock by a function. The database's clock then is an hour ahead of ours.
func theDatabasesClock(t *testing.T, server *kit.Server, name string) {
	server.Query(t, name, `CREATE SCHEMA shifted`)
	server.Query(t, name, `CREATE FUNCTION shifted.clock_timestamp() RETURNS timestamptz LANGUAGE sql
		AS $$ SELECT pg_catalog.clock_timestamp() + interval '1 hour' $$`)
	s := open(t, server.DSN(name)+"&search_path=public,shifted,pg_catalog")
	before := time.Now()
	now, err := s.Now(t.Context())
	require.NoError(t, err)
	after := time.Now()
	require.WithinRange(t, now, before.Add(50*time.Minute), after.Add(70*time.Minute))
}

// startTogether starts several servers concurrently. One server creates the schema, and each server finds it complete.
func startTogether(t *testing.T, dsn string) {
	file := dsnFile(t, dsn)
	opened := make(chan error)
	for range 4 {
		go func() {
			s, err := postgres.Open(t.Context(), file)
			if err == nil {
				_, err = s.List(t.Context(), store.Query{Limit: 1}, time.Now())
				_ = s.Close()
			}
			opened <- err
		}()
	}
	for range 4 {
		require.NoError(t, <-opened)
	}
}

func theFileIsReadAgain(t *testing.T, server *kit.Server, name string) {
	file := dsnFile(t, server.DSN(name))
	s, err := postgres.Open(t.Context(), file)
	require.NoError(t, err)
	defer s.Close()
	server.Query(t, name, "CREATE ROLE other LOGIN SUPERUSER")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(server.DSN(name), kit.User+"@", "other@", 1)), 0o600))
	server.Query(t, "postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+name+"'")
	testkit.Until(t, time.Minute, "it connects again, as another", func() error {
		_, err := s.List(t.Context(), store.Query{Limit: 1}, time.Now())
		if who := server.Query(t, "postgres",
			"SELECT DISTINCT usename FROM pg_stat_activity WHERE datname = '"+name+"'"); who != "other" {
			err = errors.Join(err, fmt.Errorf("connected as %q", who))
		}
		return err
	})
}

// killed checks that every call fails while PostgreSQL is down, and that acknowledged writes exist afterwards.
func killed(t *testing.T, server *kit.Server, name string) {
	s := open(t, server.DSN(name))
	posted, err := api.Decode([]byte(`{"name":"a",
		"credentials":{"secretRef":{"namespace":"ns","name":"x"}},"lendable":{"cpu":"1","memory":"1Gi","pods":"1"}}`))
	require.NoError(t, err)
	_, err = s.Put(t.Context(), store.Record{Offer: posted, Writer: "w"}, store.Turn{}, time.Now())
	require.NoError(t, err)
	server.Kill()
	testkit.Until(t, time.Minute, "its connections end", func() error {
		if _, err := s.Now(t.Context()); err == nil {
			return errors.New("it still answers")
		}
		return nil
	})
	_, err = s.Get(t.Context(), "a", time.Now())
	require.Error(t, err)
	require.NotErrorIs(t, err, store.ErrNotFound)
	server.Start(t)
	testkit.Until(t, time.Minute, "it connects again", func() error {
		_, err := s.Get(t.Context(), "a", time.Now())
		return err
	})
}

// Errors about the file with the DSN (the connection string) never show its content.
func TestErrorsShowNoSecret(t *testing.T) {
	address := testkit.FreePorts(t, 1)[0] // no server listens on this port
	for dsn, says := range map[string]string{
		"":                               "is empty",
		"correct-horse-battery":          "cannot be used; write it like postgres://",
		"postgres://u:correct-horse@[/d": "cannot be used",
		"postgres://u:correct-horse@" + address + "/d?connect_timeout=5": "failed to connect",
		"host=127.0.0.1 port=x password=correct-horse":                   "cannot be used",
	} {
		_, err := postgres.Open(t.Context(), dsnFile(t, dsn))
		require.ErrorContains(t, err, says, dsn)
		require.NotContains(t, err.Error(), "correct-horse")
	}
	_, err := postgres.Open(t.Context(), filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
