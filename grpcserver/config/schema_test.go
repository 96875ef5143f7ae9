package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/examples"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

func schema(t *testing.T) map[string]any {
	t.Helper()
	raw, err := json.Marshal(generateSchema())
	require.NoError(t, err)
	var s map[string]any
	require.NoError(t, json.Unmarshal(raw, &s))
	return s
}

func TestSchemaAcceptsWhatParseAccepts(t *testing.T) {
	s := schema(t)
	for name, raw := range map[string][]byte{"example": examples.NodeGroups, "good": []byte(good)} {
		require.Empty(t, against(t, s, raw), name)
	}
	cfg, err := Parse([]byte(good))
	require.NoError(t, err)
	printed, err := yaml.Marshal(cfg)
	require.NoError(t, err)
	require.Empty(t, against(t, s, printed), "what config view prints")
}

func TestSchemaRefuses(t *testing.T) {
	s := schema(t)
	for path, raw := range map[string]string{
		".hubs":                              "hubs: a\nnodeGroups: [{id: a}]",
		".nodeGroups":                        "hub: a",
		".nodeGroups[0].id":                  "nodeGroups: [{}]",
		".nodeGroups[0].sise":                "nodeGroups: [{id: a, sise: 1}]",
		".nodeGroups[0].max":                 "nodeGroups: [{id: a, max: 1001}]",
		".nodeGroups[0].min":                 "nodeGroups: [{id: a, min: 1.5}]",
		".nodeGroups[0].shape.cpu":           "nodeGroups: [{id: a, shape: {cpu: lots}}]",
		".nodeGroups[0].groupTaint":          "nodeGroups: [{id: a, groupTaint: Never}]",
		".nodeGroups[0].nodes":               "nodeGroups: [{id: a, nodes: Machine}]",
		".nodeGroups[0].budgets.peer":        "nodeGroups: [{id: a, budgets: {peer: 90}}]",
		".nodeGroups[0].budgets.unready":     "nodeGroups: [{id: a, budgets: {unready: 5}}]",
		".nodeGroups[0].taints[0].timeAdded": "nodeGroups: [{id: a, taints: [{key: a, effect: NoSchedule, timeAdded: now}]}]",
		".nodeGroups[0].selector.matchExpressions[0].operator": "nodeGroups: [{id: a, selector: {matchExpressions: [{key: " +
			"a, operator: Near}]}}]",
		".nodeGroups[0].sizes":              "nodeGroups: [{id: a, sizes: []}]",
		".nodeGroups[0].sizes[0].name":      "nodeGroups: [{id: a, sizes: [{shape: {cpu: 1}}]}]",
		".nodeGroups[0].sizes[0].cpu":       "nodeGroups: [{id: a, sizes: [{name: s, cpu: 1}]}]",
		".nodeGroups[0].sizes[0].shape.cpu": "nodeGroups: [{id: a, sizes: [{name: s, shape: {cpu: lots}}]}]",
		".defaults.sizes":                   "defaults: {sizes: []}\nnodeGroups: [{id: a}]",
		".defaults.id":                      "defaults: {id: a}\nnodeGroups: [{id: a}]",
		".limits.disks":                     "limits: {disks: 1}\nnodeGroups: [{id: a}]",
	} {
		complaints := against(t, s, []byte(raw))
		require.Len(t, complaints, 1, "%s: %v", raw, complaints)
		require.True(t, strings.HasPrefix(complaints[0], path+":"), "%v, want %s", complaints, path)
	}
	for _, name := range []string{"kinds", "defaults-kind", "not-an-object", "no-groups"} {
		raw, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
		require.NoError(t, err)
		require.NotEmpty(t, against(t, s, raw), name)
	}
}

// Editors show the descriptions; none may be missing, none may describe what is not there.
func TestSchemaDescribesEveryField(t *testing.T) {
	seen := map[string]bool{}
	var walk func(path string, s map[string]any)
	walk = func(path string, s map[string]any) {
		seen[path] = true
		require.NotEmpty(t, s["description"], path)
		properties, _ := s["properties"].(map[string]any)
		for name, p := range properties {
			walk(strictyaml.Join(path, name), p.(map[string]any))
		}
		for _, key := range []string{"items", "additionalProperties"} {
			if elements, ok := s[key].(map[string]any); ok {
				walk(path+".*", elements)
			}
		}
	}
	walk("", schema(t))
	for path := range about {
		require.True(t, seen[path], "about[%q] describes nothing", path)
	}
}

// against validates a document with the part of JSON Schema that Schema uses.
func against(t *testing.T, s map[string]any, raw []byte) []string {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON(raw)
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(asJSON))
	d.UseNumber()
	var doc any
	require.NoError(t, d.Decode(&doc))
	return check("", s, doc)
}

func check(path string, s map[string]any, doc any) (out []string) {
	complain := func(at, format string, args ...any) { out = append(out, at+": "+fmt.Sprintf(format, args...)) }
	var kind string
	switch v := doc.(type) {
	case map[string]any:
		kind = "object"
		properties, _ := s["properties"].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if p, ok := properties[key].(map[string]any); ok {
				out = append(out, check(path+"."+key, p, v[key])...)
			} else if extra, ok := s["additionalProperties"].(map[string]any); ok {
				out = append(out, check(path+"."+key, extra, v[key])...)
			} else {
				complain(path+"."+key, "unknown key")
			}
		}
		required, _ := s["required"].([]any)
		for _, r := range required {
			if _, ok := v[r.(string)]; !ok {
				complain(path+"."+r.(string), "missing")
			}
		}
	case []any:
		kind = "array"
		items, ok := s["items"].(map[string]any)
		for i := 0; ok && i < len(v); i++ {
			out = append(out, check(fmt.Sprintf("%s[%d]", path, i), items, v[i])...)
		}
		if least, ok := s["minItems"].(float64); ok && len(v) < int(least) {
			complain(path, "too short")
		}
	case json.Number:
		kind = "number"
		if _, err := v.Int64(); err == nil {
			kind = "integer"
		}
		f, _ := v.Float64()
		if most, ok := s["maximum"].(float64); ok && f > most {
			complain(path, "above %v", most)
		}
		if least, ok := s["minimum"].(float64); ok && f < least {
			complain(path, "below %v", least)
		}
	case string:
		kind = "string"
		if p, ok := s["pattern"].(string); ok && !regexp.MustCompile(p).MatchString(v) {
			complain(path, "%q does not match", v)
		}
		if most, ok := s["maxLength"].(float64); ok && len(v) > int(most) {
			complain(path, "too long")
		}
		if values, ok := s["enum"].([]any); ok && !slices.Contains(values, any(v)) {
			complain(path, "%q is not one of %v", v, values)
		}
	default:
		kind = fmt.Sprintf("%T", v)
	}
	if !slices.ContainsFunc(types(s),
		func(want string) bool { return want == kind || want == "number" && kind == "integer" }) {
		complain(path, "is %s, want %v", kind, s["type"])
	}
	return out
}

func types(s map[string]any) []string {
	if one, ok := s["type"].(string); ok {
		return []string{one}
	}
	var out []string
	several, _ := s["type"].([]any)
	for _, t := range several {
		out = append(out, t.(string))
	}
	return out
}
