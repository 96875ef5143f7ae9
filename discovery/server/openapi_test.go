package server

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
)

func TestRoutesAndDocumentationMatch(t *testing.T) {
	c := loadContract(t)
	require.Regexp(t, `^3\.1\.`, c["openapi"])
	s, err := New(Options{Store: storetest.New(t), Writers: Writers{}})
	require.NoError(t, err)
	var routed, documented []string
	for _, r := range s.routes() {
		routed = append(routed, r.method+" "+r.path)
	}
	for path, item := range c.at("paths") {
		for method := range item.(map[string]any) {
			if method != "parameters" {
				documented = append(documented, strings.ToUpper(method)+" "+path)
			}
		}
	}
	require.ElementsMatch(t, routed, documented)
}

func TestSchemasHaveTheFieldsOfTheTypes(t *testing.T) {
	c := loadContract(t)
	for name, typ := range map[string]reflect.Type{
		"Posted": reflect.TypeFor[api.Posted](), "Offer": reflect.TypeFor[api.Offer](), "List": reflect.TypeFor[api.List](),
		"Problem": reflect.TypeFor[api.Problem](),
	} {
		schema := c.at("components", "schemas", name)
		fields := map[string]bool{}
		jsonFields(typ, fields)
		delete(fields, "virtualKubelet") // the discovery server refuses this field
		var documented []string
		for key := range schema["properties"].(map[string]any) {
			documented = append(documented, key)
		}
		require.ElementsMatch(t, keys(fields), documented, name)
		if name == "Posted" {
			require.Equal(t, false, schema["additionalProperties"], "unknown fields are refused")
		}
	}
	credentials := c.at("components", "schemas", "Credentials", "properties")
	require.NotContains(t, credentials, "kubeconfigFile", "refused over the network")
	secretRef := c.at("components", "schemas", "Credentials", "properties", "secretRef")
	fields := map[string]bool{}
	jsonFields(reflect.TypeFor[discovery.SecretRefSpec](), fields)
	require.ElementsMatch(t, keys(fields), keys(secretRef["properties"].(map[string]any)))
}

func jsonFields(t reflect.Type, into map[string]bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			jsonFields(f.Type, into)
			continue
		}
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
			into[name] = true
		}
	}
}

func keys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func TestCheckerDetectsAWrongAnswer(t *testing.T) {
	c := loadContract(t)
	require.NoError(t, c.answer(http.MethodGet, "/v1/offers", 200, api.ContentJSON, []byte(`{"items":[]}`)))
	for body, want := range map[string]string{
		`{}`:                       "body.items is missing",
		`{"items":[],"more":1}`:    "body.more is not documented",
		`{"items":{}}`:             "is not a [array]",
		`{"items":[{"name":1}]}`:   "is missing",
		`{"items":[],"next":true}`: "is not a [string]",
	} {
		require.ErrorContains(t, c.answer(http.MethodGet, "/v1/offers", 200, api.ContentJSON, []byte(body)), want)
	}
	require.ErrorContains(t, c.answer(http.MethodGet, "/v1/offers", 418, "", nil), "not documented")
	require.ErrorContains(t, c.answer(http.MethodGet, "/v1/offers", 400, "text/plain", nil), "content type")
	require.ErrorContains(t, c.answer(http.MethodDelete, "/v1/offers/{name}", 204, "", []byte("x")),
		"a body is not documented")
}
