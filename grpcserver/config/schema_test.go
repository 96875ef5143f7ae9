package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
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

func TestSchemaRefusesInvalidConfigs(t *testing.T) {
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

// Editors show the descriptions. Every field has a description, and every description belongs to a field.
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

// against validates a document by the schema, and returns each fault with its path.
func against(t *testing.T, s map[string]any, raw []byte) []string {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON(raw)
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource(schemaID, s))
	compiled, err := c.Compile(schemaID)
	require.NoError(t, err)
	invalid := (*jsonschema.ValidationError)(nil)
	if err := compiled.Validate(doc); !errors.As(err, &invalid) {
		require.NoError(t, err)
		return nil
	}
	return faults(invalid)
}

// faults returns the innermost errors as texts "path: message".
func faults(e *jsonschema.ValidationError) (out []string) {
	for _, cause := range e.Causes {
		out = append(out, faults(cause)...)
	}
	if len(e.Causes) > 0 {
		return out
	}
	path := ""
	for _, step := range e.InstanceLocation {
		if _, err := strconv.Atoi(step); err == nil {
			path += "[" + step + "]"
		} else {
			path += "." + step
		}
	}
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			out = append(out, path+"."+name+": unknown key")
		}
	case *kind.Required:
		for _, name := range k.Missing {
			out = append(out, path+"."+name+": missing")
		}
	default:
		out = append(out, fmt.Sprintf("%s: %+v", path, k))
	}
	return out
}
