package worker_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	_ "modernc.org/sqlite" // reads Temporal's database

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/codec"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
)

// These are secrets that the test writes into files. A provider repeats the token in its answer.
const (
	plantedLabel = "planted-in-a-label"
	plantedError = "planted-in-an-error"
	plantedToken = "eyJhbGciOiJSUzI1NiJ9.cGxhbnRlZC10b2tlbg.c2lnbmF0dXJl"
)

// repeats is a backend whose first provider repeats our token when it refuses.
type repeats struct {
	backend.Backend
	first string
}

func (r repeats) Establish(ctx context.Context, p fleet.Provider, progress backend.Progress) error {
	if p.ID == r.first {
		return &backend.KindError{Kind: backend.ErrDenied, Message: plantedError + ": invalid token " + plantedToken}
	}
	return r.Backend.Establish(ctx, p, progress)
}

// TestDatabaseContainsNoSecrets reads Temporal's whole database after the life of an instance. The database contains no
// secret. When a codec is used, the payloads cannot be read without the keys.
func TestDatabaseContainsNoSecrets(t *testing.T) {
	for _, encrypts := range []bool{false, true} {
		t.Run(fmt.Sprint("codec=", encrypts), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, 2)
			s.spec.Labels = map[string]string{"example.com/marker": plantedLabel}
			var keys *codec.Codec
			var options []grpc.DialOption
			if encrypts {
				keys, options = s.encrypted()
			}
			stop := s.ownServer(options)
			secrets := []string{plantedToken, "cGxhbnRlZC10b2tlbg"}
			for _, p := range s.providers {
				secrets = append(secrets, s.secret(p))
			}
			ended := s.lifeWith(func(o *worker.Options) { o.Backend = repeats{o.Backend, s.providers[0]} })
			ended()
			stop()

			stored := readDatabase(t, filepath.Join(s.dir, "temporal.db"))
			require.NotEmpty(t, stored)
			require.True(t, stored.has(nil, s.spec.ID), "ids stay plain")
			for _, text := range []string{plantedLabel, plantedError} {
				require.Equal(t, !encrypts, stored.has(nil, text), "%s, read without keys", text)
				require.True(t, stored.has(keys, text), "%s, read with keys", text)
			}
			for _, secret := range secrets {
				require.False(t, stored.has(keys, secret), "%s is in the database", secret)
				require.False(t, stored.has(keys, base64.StdEncoding.EncodeToString([]byte(secret))[:len(secret)]),
					"%s is in the database, in base64", secret)
			}
		})
	}
}

// encrypted returns a codec with its own key, and the dial options for it.
func (s *scene) encrypted() (*codec.Codec, []grpc.DialOption) {
	s.t.Helper()
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	path := filepath.Join(s.dir, "keys")
	require.NoError(s.t, os.WriteFile(path, []byte("test "+base64.StdEncoding.EncodeToString(key)), 0o600))
	c, err := codec.Open(path, slog.New(slog.DiscardHandler))
	require.NoError(s.t, err)
	option, err := c.DialOption()
	require.NoError(s.t, err)
	return c, []grpc.DialOption{option}
}

// lifeWith runs the life of an instance whose first attempt fails. It returns a function that stops the worker.
func (s *scene) lifeWith(change func(*worker.Options)) (stop func()) {
	s.t.Helper()
	o, err := options(s.temporal, s.world, s.queue, filepath.Join(s.dir, "offers.yaml"))
	require.NoError(s.t, err)
	change(&o)
	stop = s.start(o)
	s.configure()
	s.grow(1)
	ready := s.allIn(fleet.Ready, 1).Instances[0]
	require.Equal(s.t, s.providers[1], ready.Provider)
	s.release(ready.Name)
	s.allIn("", 0)
	return stop
}

// rows holds the values of a database, as bytes.
type rows [][]byte

// readDatabase reads each value of each table.
func readDatabase(t *testing.T, path string) (all rows) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	var tables []string
	names, err := db.QueryContext(t.Context(), "SELECT name FROM sqlite_master WHERE type = 'table'")
	require.NoError(t, err)
	for names.Next() {
		var name string
		require.NoError(t, names.Scan(&name))
		tables = append(tables, name)
	}
	require.NoError(t, names.Err())
	for _, table := range tables {
		found, err := db.QueryContext(t.Context(), fmt.Sprintf("SELECT * FROM %q", table)) //nolint:gosec // its own names
		require.NoError(t, err)
		columns, err := found.Columns()
		require.NoError(t, err)
		for found.Next() {
			values, into := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			require.NoError(t, found.Scan(into...))
			for _, v := range values {
				all = append(all, bytes.Clone(v))
			}
		}
		require.NoError(t, found.Err())
	}
	return all
}

// The method `has` reports whether a text is in the database: in plain form, compressed, or in a payload that the keys
// decrypt.
func (r rows) has(keys *codec.Codec, text string) bool {
	for _, value := range r {
		if contains(keys, value, []byte(text), 0) {
			return true
		}
	}
	return false
}

func contains(keys *codec.Codec, in, text []byte, depth int) bool {
	if bytes.Contains(in, text) {
		return true
	}
	if depth > 20 {
		return false
	}
	for at := range in {
		if bytes.HasPrefix(in[at:], []byte{0x1f, 0x8b, 0x08}) && contains(keys, unzipped(in[at:]), text, depth+1) {
			return true
		}
	}
	return keys != nil && bytes.Contains(in, []byte(codec.Encoding)) && inPayloads(keys, in, text, depth)
}

// unzipped decompresses as much of the input as it can.
func unzipped(in []byte) []byte {
	from, err := gzip.NewReader(bytes.NewReader(in))
	if err != nil {
		return nil
	}
	from.Multistream(false)
	out, _ := io.ReadAll(from)
	return out
}

// inPayloads walks through a message of an unknown type, and decrypts the payloads in it.
func inPayloads(keys *codec.Codec, in, text []byte, depth int) bool {
	var p common.Payload
	if proto.Unmarshal(in, &p) == nil && strings.HasPrefix(string(p.GetMetadata()["encoding"]), codec.Encoding) {
		plain, err := keys.Decode([]*common.Payload{&p})
		return err == nil && (bytes.Contains(plain[0].GetData(), text) || contains(keys, plain[0].GetData(), text, depth+1))
	}
	for len(in) > 0 {
		_, kind, n := protowire.ConsumeTag(in)
		if n < 0 {
			return false
		}
		in = in[n:]
		size := protowire.ConsumeFieldValue(1, kind, in)
		if size < 0 {
			return false
		}
		if kind == protowire.BytesType {
			if inner, _ := protowire.ConsumeBytes(in); contains(keys, inner, text, depth+1) {
				return true
			}
		}
		in = in[size:]
	}
	return false
}
