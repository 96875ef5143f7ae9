package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
)

func TestParseWritersRefuses(t *testing.T) {
	for doc, want := range map[string]string{
		"":                                       "the document is empty",
		"writers: [{name: a, token: x}]":         "writers[0].token: unknown field",
		"writers: [{name: a, tokenSHA256: abc}]": "writers[0].tokenSHA256: must be 64 hex digits",
		"writers: [{name: a}]":                   "writers[0].tokenSHA256: must be 64 hex digits",
		fmt.Sprintf("writers: [{name: a, tokenSHA256: %s, secretNamespaces: []}]",
			hash("x")): "writers[0].secretNamespaces: is empty",
		fmt.Sprintf("writers: [{tokenSHA256: %s}]",
			hash("x")): "writers[0].name: is missing",
		fmt.Sprintf("writers: [{name: a, tokenSHA256: %s}, {name: a, tokenSHA256: %s}]", hash("x"),
			hash("y")): `writers[1].name: belongs to another writer too`,
		fmt.Sprintf("writers: [{name: a, tokenSHA256: %s}, {name: b, tokenSHA256: %s}]", hash("x"),
			strings.ToUpper(hash("x"))): "writers[1].tokenSHA256: belongs to another writer too",
		"writers: [{name: a, certificate: milan}]":                                `writers[0].certificate: "milan" is not a URI`,
		"writers: [{name: a, certificate: 'u:x'}, {name: b, certificate: 'u:x'}]": `writers[1].certificate: belongs to another`,
		"writers: [{name: a, certificate: 'u:x', consumer: UP}]":                  `writers[0].consumer: "UP" is not a Liqo`,
		"writers: [{name: a, certificate: 'u:x', consumer: b, readOnly: true}]":   "writers[0].readOnly: permits reading all",
	} {
		_, err := ParseWriters([]byte(doc))
		require.ErrorContains(t, err, want)
	}
}

func TestChangedWritersFileIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "writers.yaml")
	write := func(content string) { require.NoError(t, os.WriteFile(path, []byte(content), 0o600)) }
	in := func(f *WritersFile, token string) bool { _, ok := f.Current().Authenticate(token); return ok }
	_, err := OpenWriters(path)
	require.ErrorIs(t, err, os.ErrNotExist)

	write(fmt.Sprintf("writers: [{name: a, tokenSHA256: %s}]", hash("one")))
	f, err := OpenWriters(path)
	require.NoError(t, err)
	require.True(t, in(f, "one"))
	require.False(t, in(f, "two"))
	require.False(t, in(f, ""))

	write(fmt.Sprintf("writers: [{name: a, tokenSHA256: %s}]", hash("two")))
	require.False(t, in(f, "one"), "revoked immediately")
	require.True(t, in(f, "two"))

	write("writers: [{")
	require.False(t, in(f, "two"), "a broken file admits no client")
	require.Error(t, f.Err())
	require.NoError(t, os.Remove(path))
	require.False(t, in(f, "two"))

	write(fmt.Sprintf("writers: [{name: a, tokenSHA256: %s}]", hash("two")))
	require.True(t, in(f, "two"))
	require.NoError(t, f.Err())
}

// breaking holds the writers of a file that is broken from the second read on.
type breaking struct {
	Writers
	looks atomic.Int32
}

func (b *breaking) Current() Writers {
	if b.looks.Add(1) == 1 {
		return b.Writers
	}
	return nil
}

// While the writers file is broken, no request is authenticated. A request that was admitted before the file broke
// does not receive an empty list, because a worker would accept this list. Such a request also cannot take over the
// name of another writer's offer.
func TestWritersFileThatBreaksDuringARequest(t *testing.T) {
	keep := storetest.New(t)
	r := newRig(t, keep)
	require.Equal(t, 201, r.do("PUT", "/v1/offers/milan", tokenA, goodOffer).status)
	var writers changing
	a, b, read, _ := rowsOf()
	writers.set(t, a, b, read)
	ofB := strings.Replace(goodOffer, `"lend"`, `"lend-b"`, 1)
	for _, c := range []struct {
		method, path, token, body string
		want                      int
	}{
		{"GET", "/v1/offers", tokenR, "", 401},
		{"GET", "/v1/offers/milan", tokenR, "", 401},
		{"PUT", "/v1/offers/milan", tokenB, ofB, 403},
	} {
		r.serve(Options{Store: storetest.At(keep, r.clock), Writers: &breaking{Writers: writers.Current()}})
		require.Equal(t, c.want, r.do(c.method, c.path, c.token, c.body).status, "%s %s", c.method, c.path)
	}
}
