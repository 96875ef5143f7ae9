package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/postgres"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/sqlite"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	kit "github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/postgres"
)

// shared is an empty database for several servers. The database's clock is an hour ahead.
type shared struct {
	name     string // the store, as an argument of the server process
	open     func(t *testing.T) store.Store
	advance  func(t *testing.T, seconds int)
	postgres *kit.Server // nil: SQLite
}

// onEachStore runs a test with an empty database of each kind. Each test has its own PostgreSQL server.
func onEachStore(t *testing.T, test func(*testing.T, shared)) {
	t.Run("SQLite", func(t *testing.T) { test(t, onSQLite(t)) })
	t.Run("PostgreSQL", func(t *testing.T) {
		testkit.Slow(t)
		test(t, onPostgres(t, kit.New(t)))
	})
}

func onSQLite(t *testing.T) shared {
	path := filepath.Join(t.TempDir(), "offers.db")
	var mu sync.Mutex
	ahead := time.Hour
	return shared{
		name: "sqlite:" + path,
		open: func(t *testing.T) store.Store {
			s, err := sqlite.Open(t.Context(), path)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return storetest.At(s, func() time.Time { mu.Lock(); defer mu.Unlock(); return time.Now().Add(ahead) })
		},
		advance: func(_ *testing.T, seconds int) {
			mu.Lock()
			defer mu.Unlock()
			ahead += time.Duration(seconds) * time.Second
		},
	}
}

// onPostgres creates a database in which a function replaces PostgreSQL's own clock.
func onPostgres(t *testing.T, server *kit.Server) shared {
	const name = "offers"
	server.CreateDatabase(t, name)
	for _, sql := range []string{"CREATE SCHEMA shifted", "CREATE TABLE shifted.by (seconds int)",
		"INSERT INTO shifted.by VALUES (3600)", `CREATE FUNCTION shifted.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
		$$ SELECT pg_catalog.clock_timestamp() + make_interval(secs => seconds) FROM shifted.by $$`} {
		server.Query(t, name, sql)
	}
	file := filepath.Join(t.TempDir(), "dsn")
	require.NoError(t, os.WriteFile(file, []byte(server.DSN(name)+"&search_path=public,shifted,pg_catalog"), 0o600))
	return shared{
		name: "postgres:" + file,
		open: func(t *testing.T) store.Store {
			s, err := postgres.Open(t.Context(), file)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return s
		},
		advance: func(t *testing.T, seconds int) {
			server.Query(t, name, fmt.Sprintf("UPDATE shifted.by SET seconds = seconds + %d", seconds))
		},
		postgres: server,
	}
}

// changing holds writers that a test edits.
type changing struct {
	mu sync.Mutex
	ws Writers
}

func (c *changing) Current() Writers { c.mu.Lock(); defer c.mu.Unlock(); return c.ws }

// set parses the rows of a writers file.
func (c *changing) set(t *testing.T, rows ...string) {
	t.Helper()
	ws, err := ParseWriters([]byte("writers:\n- " + strings.Join(rows, "\n- ") + "\n"))
	require.NoError(t, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ws = ws
}

// rowsOf returns the rows of the writers a, b, r and m. The writer b may use only one namespace of Secrets, r may
// only read, and m may offer only one provider.
func rowsOf() (a, b, r, m string) {
	return fmt.Sprintf("{name: a, tokenSHA256: %s}", hash(tokenA)),
		fmt.Sprintf("{name: b, tokenSHA256: %s, secretNamespaces: [lend-b]}", hash(tokenB)),
		fmt.Sprintf("{name: r, tokenSHA256: %s, readOnly: true}", hash(tokenR)),
		fmt.Sprintf("{name: m, tokenSHA256: %s, providers: [milan-1]}", hash(tokenM))
}

const tokenM = "token-of-m"

// replica returns one of several servers of the same database.
func replica(t *testing.T, db shared, writers Authenticator) *rig {
	t.Helper()
	r := &rig{t: t, contract: loadContract(t), log: &testkit.Buffer{}}
	r.serve(Options{Store: db.open(t), Writers: writers})
	return r
}

func (r *rig) names() (names []string) {
	r.t.Helper()
	var list api.List
	got := r.do("GET", "/v1/offers", tokenR, "")
	require.Equal(r.t, 200, got.status, string(got.body))
	require.NoError(r.t, json.Unmarshal(got.body, &list))
	for _, o := range list.Items {
		names = append(names, o.Name)
	}
	return names
}

func with(field string) string { return strings.Replace(goodOffer, `{"name"`, `{`+field+`,"name"`, 1) }

// Several servers of one database share offers, sessions and sequences. An offer that ends on one server ends on the
// other server at the same time. The servers use the database's clock, which is an hour ahead of their own
// clocks.
func TestServersOfOneDatabaseShareTheirState(t *testing.T) {
	onEachStore(t, func(t *testing.T, db shared) {
		var writers changing
		a, b, r, _ := rowsOf()
		writers.set(t, a, b, r)
		one, two := replica(t, db, &writers), replica(t, db, &writers)
		const day, path = 24 * 60 * 60, "/v1/offers/milan"
		first := one.begin(tokenA, "milan-1")
		require.Equal(t, 201, two.do("PUT", path+turn(first, 1), tokenA, with(`"ttlSeconds":86400`)).status)
		require.Equal(t, 409, one.do("PUT", path+turn(first, 1), tokenA, goodOffer).status, "replayed")
		for _, server := range []*rig{one, two} {
			var o api.Offer
			require.NoError(t, json.Unmarshal(server.do("GET", path, tokenR, "").body, &o))
			require.Greater(t, o.RemainingSeconds, float64(day-3000), "an hour's difference would show")
			require.LessOrEqual(t, o.RemainingSeconds, float64(day))
		}

		type outcome struct{ sequence, status int }
		outcomes := make(chan outcome, 20)
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				server, sequence := []*rig{one, two}[i%2], i+2
				body := strings.Replace(with(`"ttlSeconds":86400`), `"price":0.1`, fmt.Sprintf(`"price":%d`, sequence), 1)
				outcomes <- outcome{sequence, server.do("PUT", path+turn(first, int64(sequence)), tokenA, body).status}
			})
		}
		all.Wait()
		close(outcomes)
		last, unknown := 0, []float64{}
		for o := range outcomes {
			if o.status == 200 {
				last = max(last, o.sequence)
			} else if o.status != 409 { // a slow machine: the write may have taken effect
				unknown = append(unknown, float64(o.sequence))
			}
		}
		require.NotZero(t, last)
		for _, server := range []*rig{one, two} {
			var o api.Offer
			require.NoError(t, json.Unmarshal(server.do("GET", path, tokenR, "").body, &o))
			require.GreaterOrEqual(t, o.Price, float64(last))
			require.Contains(t, append(unknown, float64(last)), o.Price, "the highest sequence that was accepted")
		}

		second := two.begin(tokenA, "milan-1")
		require.Greater(t, second, first)
		require.Equal(t, 409, one.do("DELETE", path+turn(first, 100), tokenA, "").status, "the session is over everywhere")
		require.Equal(t, []string{"milan"}, one.names())
		db.advance(t, day+1)
		require.Empty(t, one.names())
		require.Empty(t, two.names())
		require.Equal(t, 404, one.do("GET", path, tokenR, "").status)
		require.Equal(t, 201, two.do("PUT", path, tokenB, strings.Replace(goodOffer, `"lend"`, `"lend-b"`, 1)).status)
	})
}

// After a writer is removed, or loses its permission for some offers, no answer contains these offers.
func TestOffersOfARemovedWriterAreHidden(t *testing.T) {
	onEachStore(t, func(t *testing.T, db shared) {
		var writers changing
		a, b, r, _ := rowsOf()
		writers.set(t, a, b, r)
		one, two := replica(t, db, &writers), replica(t, db, &writers)
		ofB := strings.NewReplacer(`"lend"`, `"lend-b"`, `"name":"milan","c`, `"name":"rome","c`).Replace(goodOffer)
		require.Equal(t, 201, one.do("PUT", "/v1/offers/milan", tokenA, goodOffer).status)
		require.Equal(t, 201, one.do("PUT", "/v1/offers/rome", tokenB, ofB).status)
		require.Equal(t, []string{"milan", "rome"}, two.names())

		readOnly := strings.Replace(a, "}", ", readOnly: true}", 1)
		bound := strings.Replace(a, "}", ", secretNamespaces: [other]}", 1)
		for _, rows := range [][]string{{b, r}, {b, r, readOnly}, {b, r, bound}} {
			writers.set(t, rows...)
			for _, server := range []*rig{one, two} {
				require.Equal(t, []string{"rome"}, server.names())
				require.Equal(t, 404, server.do("GET", "/v1/offers/milan", tokenR, "").status)
			}
		}
		writers.set(t, a, b, r)
		require.Equal(t, []string{"milan", "rome"}, two.names(), "a mistake can be undone")
		writers.set(t, b, r)
		taken := strings.Replace(goodOffer, `"lend"`, `"lend-b"`, 1)
		require.Equal(t, 201, two.do("PUT", "/v1/offers/milan", tokenB, taken).status, "the name is free")
		writers.set(t, a, b, r)
		require.Equal(t, 403, one.do("PUT", "/v1/offers/milan", tokenA, goodOffer).status)
	})
}
