package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

const (
	goodOffer = `{"name":"milan","credentials":{"secretRef":{"namespace":"lend","name":"milan"}},
		"lendable":{"cpu":"16","memory":"64Gi","pods":"110"},"labels":{"country":"it"},"price":0.1,
		"prices":{"cpu":0.03,"nvidia.com/gpu":1.2}}`
	tokenA, tokenB, tokenR = "token-of-a", "token-of-b", "token-of-r"
)

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// rig is a server with three tokens and its own clock. It checks every answer against openapi.yaml.
type rig struct {
	t        *testing.T
	url      string
	client   *http.Client
	contract contract
	log      *testkit.Buffer
	mu       sync.Mutex
	now      time.Time
}

func (r *rig) clock() time.Time { r.mu.Lock(); defer r.mu.Unlock(); return r.now }

func newRig(t *testing.T, keep store.Store) *rig {
	t.Helper()
	writers, err := ParseWriters(fmt.Appendf(nil, "writers:\n- {name: a, tokenSHA256: %s}\n- {name: b, tokenSHA256: %s, "+
		"secretNamespaces: [lend-b]}\n- {name: r, tokenSHA256: %s, readOnly: true}\n",
		hash(tokenA), strings.ToUpper(hash(tokenB)), hash(tokenR)))
	require.NoError(t, err)
	r := &rig{t: t, contract: loadContract(t), log: &testkit.Buffer{}, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	r.serve(Options{Store: storetest.At(keep, r.clock), Writers: writers})
	return r
}

func (r *rig) serve(options Options) {
	r.t.Helper()
	options.Log = cmp.Or(options.Log, slog.New(slog.NewTextHandler(r.log, nil)))
	s, err := New(options)
	require.NoError(r.t, err)
	web := httptest.NewTLSServer(s)
	r.t.Cleanup(web.Close)
	r.url, r.client = web.URL, web.Client()
}

type result struct {
	status int
	header http.Header
	body   []byte
}

func (r result) problem(t *testing.T) api.Problem {
	t.Helper()
	var p api.Problem
	require.NoError(t, json.Unmarshal(r.body, &p), string(r.body))
	require.Equal(t, r.status, p.Status)
	return p
}

func (r *rig) do(method, path, token, body string, header ...string) result {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(body))
	require.NoError(r.t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := r.client.Do(req)
	require.NoError(r.t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	template, _, _ := strings.Cut(path, "?")
	if strings.HasPrefix(template, api.PathOffers+"/") {
		template = api.PathOffers + "/{name}"
	}
	if r.contract.at("paths", template, strings.ToLower(method)) != nil {
		require.NoError(r.t, r.contract.answer(method, template, resp.StatusCode, resp.Header.Get("Content-Type"), raw))
	}
	return result{status: resp.StatusCode, header: resp.Header, body: raw}
}

func TestOfferIsWrittenListedAndDeleted(t *testing.T) {
	r := newRig(t, storetest.New(t))
	const path = "/v1/offers/milan"
	require.Equal(t, 404, r.do("GET", path, tokenA, "").status)

	put := r.do("PUT", path, tokenA, goodOffer)
	require.Equal(t, 201, put.status)
	require.Equal(t, path, put.header.Get("Location"))
	var o api.Offer
	require.NoError(t, json.Unmarshal(put.body, &o))
	require.Equal(t, "a", o.Writer)
	require.Equal(t, r.clock(), o.Updated)
	require.Equal(t, r.clock().Add(24*time.Hour), *o.Expires, "every offer ends")
	require.Len(t, o.Epoch, 12)

	again := r.do("PUT", path, tokenA, strings.Replace(goodOffer, "0.1", "0.2", 1))
	require.Equal(t, 200, again.status)
	var dearer api.Offer
	require.NoError(t, json.Unmarshal(again.body, &dearer))
	require.NotEqual(t, o.Epoch, dearer.Epoch)

	require.Equal(t, 404, r.do("GET", path, tokenB, "").status, "another writer's")
	for _, token := range []string{tokenA, tokenR} {
		got := r.do("GET", path, token, "")
		require.Equal(t, 200, got.status)
		require.JSONEq(t, string(again.body), string(got.body))
		require.Equal(t, "no-store", got.header.Get("Cache-Control"))
	}

	other := strings.Replace(goodOffer, `"lend"`, `"lend-b"`, 1)
	require.Equal(t, typeOwned, r.do("PUT", path, tokenB, other).problem(t).Type)
	require.Equal(t, 403, r.do("DELETE", path, tokenB, "").status)

	r.mu.Lock()
	r.now = r.now.Add(24 * time.Hour)
	r.mu.Unlock()
	require.Equal(t, 404, r.do("GET", path, tokenA, "").status)
	require.Equal(t, 201, r.do("PUT", path, tokenB, other).status, "an expired name is free")
	require.Equal(t, 204, r.do("DELETE", path, tokenB, "").status)
	require.Equal(t, 204, r.do("DELETE", path, tokenB, "").status, "idempotent")
	require.NotContains(t, r.log.String(), "token-of")
}

func TestPutRefusesInvalidOffers(t *testing.T) {
	with := func(old, new string) string {
		if !strings.Contains(goodOffer, old) {
			panic(old)
		}
		return strings.Replace(goodOffer, old, new, 1)
	}
	for name, c := range map[string]struct {
		body   string
		status int
		path   string // the path of the field
		detail string
		header []string
	}{
		"no JSON": {body: "name: milan", status: 400, detail: "not JSON"},
		"YAML type": {body: goodOffer, status: 415, header: []string{"Content-Type", "application/yaml"},
			detail: "application/json"},
		"no type":       {body: goodOffer, status: 415, header: []string{"Content-Type", ""}, detail: "application/json"},
		"too large":     {body: goodOffer + strings.Repeat(" ", api.MaxBody), status: 413, detail: "8192 bytes"},
		"a list":        {body: "[]", status: 422, path: "", detail: "got a list, want a mapping"},
		"null":          {body: "null", status: 422, path: "", detail: "the document is empty"},
		"unknown field": {body: with(`"price"`, `"prize"`), status: 422, path: "prize", detail: "unknown field"},
		"twice a field": {body: with(`"price":0.1`, `"price":0.1,"price":0.2`), status: 422, path: "",
			detail: `key "price" is given twice`},
		"server's field": {body: with(`"price":0.1`, `"writer":"b"`), status: 422, path: "writer", detail: "unknown field"},
		"bad price": {body: with(`"cpu":0.03`, `"cpu":-1`), status: 422, path: "prices.cpu",
			detail: "is -1: give 0 to 1000000"},
		"price of what": {body: with(`"nvidia.com/gpu":1.2`, `"gpu":1.2`), status: 422, path: "prices.gpu",
			detail: "not a resource of Kubernetes"},
		"another name": {body: with(`"name":"milan","c`, `"name":"rome","c`), status: 422, path: "name",
			detail: "not the name in the path"},
		"no amount":   {body: with(`"16"`, `"lots"`), status: 422, path: "lendable.cpu", detail: "want a"},
		"many digits": {body: with(`"16"`, `"1e300000"`), status: 422, path: "lendable.cpu", detail: "want a"},
		"no pods":     {body: with(`,"pods":"110"`, ""), status: 422, path: "lendable.pods", detail: "is missing"},
		"a file": {body: with(`{"secretRef":{"namespace":"lend","name":"milan"}}`,
			`{"kubeconfigFile":"/etc/passwd"}`), status: 422, path: "credentials.kubeconfigFile", detail: "not accepted by the discovery server"},
		"no credentials": {body: with(`{"secretRef":{"namespace":"lend","name":"milan"}}`, `{}`), status: 422,
			path: "credentials", detail: "exactly one"},
		"bad provider": {body: with(`"price"`, `"provider":"A_B","price"`), status: 422, path: "provider",
			detail: "is not a DNS-1123 label"},
		"expired": {body: with(`"price"`, `"expires":"2026-11-20T12:00:00Z","price"`), status: 422, path: "expires",
			detail: "not in the future"},
		"for too long": {body: with(`"price"`, `"expires":"2027-11-20T12:00:00Z","price"`), status: 422, path: "expires",
			detail: "more than 720h0m0s away"},
		"no time": {body: with(`"price"`, `"expires":"soon","price"`), status: 422, path: "expires",
			detail: "want a"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, storetest.New(t))
			got := r.do("PUT", "/v1/offers/milan", tokenA, c.body, c.header...)
			require.Equal(t, c.status, got.status, string(got.body))
			p := got.problem(t)
			if c.status == 422 {
				require.Equal(t, typeInvalid, p.Type)
				require.Len(t, p.Errors, 1)
				require.Equal(t, c.path, p.Errors[0].Path)
				require.Contains(t, p.Errors[0].Detail, c.detail)
			} else {
				require.Equal(t, "about:blank", p.Type)
				require.Contains(t, p.Detail, c.detail)
			}
			require.Equal(t, 404, r.do("GET", "/v1/offers/milan", tokenA, "").status, "nothing was changed")
		})
	}
}

// The server accepts escaped slashes in JSON, which PHP and some other languages write.
func TestPutReadsAllOfJSON(t *testing.T) {
	r := newRig(t, storetest.New(t))
	got := r.do("PUT", "/v1/offers/milan", tokenA, strings.Replace(goodOffer, `"cpu"`, `"nvidia.com\/gpu":"1","cpu"`, 1))
	require.Equal(t, 201, got.status, string(got.body))
	require.Contains(t, string(got.body), `"nvidia.com/gpu":"1"`)
}

func TestPutReportsAllFaults(t *testing.T) {
	r := newRig(t, storetest.New(t))
	p := r.do("PUT", "/v1/offers/milan", tokenA, `{"prize":1,"lendable":{"cpu":"x"}}`).problem(t)
	var paths []string
	for _, e := range p.Errors {
		paths = append(paths, e.Path)
	}
	require.ElementsMatch(t, []string{"prize", "name", "credentials", "lendable.cpu", "lendable.memory", "lendable.pods"},
		paths)
}

func TestSecretNamespacesAreKept(t *testing.T) {
	r := newRig(t, storetest.New(t))
	p := r.do("PUT", "/v1/offers/milan", tokenB, goodOffer).problem(t)
	require.Equal(t, []api.FieldError{{Path: "credentials.secretRef.namespace",
		Detail: "is not one of this writer's namespaces"}}, p.Errors)
}

func TestPermissionsOfEachRole(t *testing.T) {
	for _, c := range []struct {
		method, path, token string
		header              []string
		status              int
	}{
		{"GET", "/v1/offers", "", nil, 401},
		{"GET", "/v1/offers", "wrong", nil, 401},
		{"GET", "/v1/offers", hash(tokenA), nil, 401}, // a hash in place of the token
		{"GET", "/v1/offers", "", []string{"Authorization", "Basic " + tokenA}, 401},
		{"GET", "/v1/offers", "", []string{"Authorization", "Bearer "}, 401},
		{"GET", "/v1/offers", "", []string{"Authorization", "bearer " + tokenA}, 200},
		{"GET", "/v1/offers", tokenR, nil, 200},
		{"GET", "/v1/offers/x", "", nil, 401},
		{"PUT", "/v1/offers/milan", "", nil, 401},
		{"PUT", "/v1/offers/milan", tokenR, nil, 403},
		{"PUT", "/v1/offers/milan", tokenA, nil, 201},
		{"DELETE", "/v1/offers/milan", "", nil, 401},
		{"DELETE", "/v1/offers/milan", tokenR, nil, 403},
		{"GET", "/healthz", "", nil, 204},
		{"GET", "/v1/openapi.yaml", "", nil, 200},
	} {
		r := newRig(t, storetest.New(t))
		body := ""
		if c.method == "PUT" {
			body = goodOffer
		}
		got := r.do(c.method, c.path, c.token, body, c.header...)
		require.Equal(t, c.status, got.status, "%v: %s", c, got.body)
		if c.status == 401 {
			require.Contains(t, got.header.Get("WWW-Authenticate"), "Bearer")
			require.NotContains(t, r.log.String(), "wrong")
		}
	}
}

func TestMissingOffersAndRoutes(t *testing.T) {
	r := newRig(t, storetest.New(t))
	got := r.do("GET", "/v2/offers", tokenA, "")
	require.Equal(t, 404, got.problem(t).Status)
	require.Equal(t, api.ContentProblem, got.header.Get("Content-Type"))
	got = r.do("POST", "/v1/offers", tokenA, goodOffer)
	require.Equal(t, 405, got.problem(t).Status)
	require.Equal(t, "GET, HEAD", got.header.Get("Allow"))
}

func TestListFiltersAndPages(t *testing.T) {
	r := newRig(t, storetest.New(t))
	for i, country := range []string{"it", "fr", "it", "it", "es"} {
		name := fmt.Sprintf("o%d", i)
		body := strings.NewReplacer(`"name":"milan","c`, fmt.Sprintf(`"name":%q,"c`, name), `"16"`, fmt.Sprintf(`"%d"`, i+1),
			`:"it"`, fmt.Sprintf(`:%q`, country)).Replace(goodOffer)
		require.Equal(t, 201, r.do("PUT", "/v1/offers/"+name, tokenA, body).status)
	}
	for query, want := range map[string]string{
		"":                                  "o0 o1 o2 o3 o4",
		"?labelSelector=country%3Dit":       "o0 o2 o3",
		"?labelSelector=country+in+(fr,es)": "o1 o4",
		"?labelSelector=!country":           "",
		"?resource=cpu%3D3":                 "o2 o3 o4",
		"?resource=cpu%3D2500m&resource=memory%3D64Gi": "o2 o3 o4",
		"?resource=memory%3D65Gi":                      "",
		"?resource=nvidia.com/gpu%3D1":                 "",
		"?resource=ephemeral-storage%3D20Gi":           "o0 o1 o2 o3 o4",
		"?labelSelector=country%3Dit&limit=2":          "o0 o2 next=o2",
		"?labelSelector=country%3Dit&limit=2&after=o2": "o3",
		"?limit=5":         "o0 o1 o2 o3 o4",
		"?after=o4":        "",
		"?limit=1&after=o": "o0 next=o0",
	} {
		got := r.do("GET", "/v1/offers"+query, tokenR, "")
		require.Equal(t, 200, got.status, query)
		var list api.List
		require.NoError(t, json.Unmarshal(got.body, &list))
		var names []string
		for _, o := range list.Items {
			names = append(names, o.Name)
		}
		if list.Next != "" {
			names = append(names, "next="+list.Next)
		}
		require.Equal(t, want, strings.Join(names, " "), query)
	}
	for query, path := range map[string]string{
		"?labelSelector=a=b=c": "labelSelector", "?resource=cpu": "resource", "?resource=%3D2": "resource",
		"?limit=0":   "limit",
		"?limit=501": "limit", "?limit=x": "limit", "?cpu=2": "cpu", "?after=a&after=b": "after",
		"?" + strings.Repeat("resource=cpu%3D1&", 33):                                        "resource",
		"?resource=cpu%3D1e300000":                                                           "resource",
		"?labelSelector=a+in+(" + strings.Repeat("x,", 40) + "y)" + strings.Repeat(",b", 40): "labelSelector",
	} {
		p := r.do("GET", "/v1/offers"+query, tokenR, "").problem(t)
		require.Equal(t, 400, p.Status, query)
		require.Equal(t, path, p.Errors[0].Path, query)
	}
}

func TestListReadsManyPagesOfTheStore(t *testing.T) {
	keep := storetest.New(t)
	r := newRig(t, keep)
	posted, err := api.Decode([]byte(goodOffer))
	require.NoError(t, err)
	end := r.clock().Add(time.Hour)
	posted.Expires, posted.Credentials.SecretRef.Namespace = &end, "lend-b"
	all := 2*api.MaxLimit + 1
	for i := range all {
		posted.Name = fmt.Sprintf("o%04d", i)
		_, err := keep.Put(t.Context(), store.Record{Offer: posted, Writer: "ab"[i%2 : i%2+1]}, store.Turn{}, r.clock())
		require.NoError(t, err)
	}
	names := 0
	after := ""
	for range 10 {
		var list api.List
		require.NoError(t, json.Unmarshal(r.do("GET", "/v1/offers?limit=500&after="+after, tokenR, "").body, &list))
		names += len(list.Items)
		if after = list.Next; after == "" {
			break
		}
	}
	require.Equal(t, all, names)
}

var errDisk = errors.New("disk on fire")

// brokenStore is a store in which every call fails.
type brokenStore struct{}

func (brokenStore) Begin(context.Context, string, string) (int64, error) { return 0, errDisk }
func (brokenStore) Put(context.Context, store.Record, store.Turn, time.Time) (store.Record, error) {
	return store.Record{}, errDisk
}
func (brokenStore) Get(context.Context, string, time.Time) (store.Record, error) {
	return store.Record{}, errDisk
}
func (brokenStore) List(context.Context, store.Query, time.Time) ([]store.Record, error) {
	return nil, errDisk
}
func (brokenStore) Delete(context.Context, string, string, store.Turn, time.Time) error {
	return errDisk
}
func (brokenStore) Now(context.Context) (time.Time, error)        { return time.Time{}, errDisk }
func (brokenStore) Sweep(context.Context, time.Time) (int, error) { return 0, errDisk }

func TestErrorsOfTheStoreAreHidden(t *testing.T) {
	r := newRig(t, brokenStore{})
	require.Equal(t, 204, r.do("GET", "/healthz", "", "").status)
	for _, got := range []result{r.do("GET", "/readyz", "", ""), r.do("GET", "/v1/offers", tokenA, ""),
		r.do("PUT", "/v1/offers/milan", tokenA, goodOffer)} {
		require.Equal(t, 503, got.status)
		require.Contains(t, got.problem(t).Detail, "database")
		require.NotContains(t, string(got.body), "disk")
	}
	require.Contains(t, r.log.String(), "disk on fire")
}
