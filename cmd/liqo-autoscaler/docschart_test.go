package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// charts lists the folders of the charts.
var charts = []string{"deploy/helm/liqo-autoscaler", "deploy/helm/liqo-autoscaler-agent"}

// chartSchema holds those parts of a JSON schema that list the keys.
type chartSchema struct {
	Ref         string                  `json:"$ref"`
	Properties  map[string]*chartSchema `json:"properties"`
	Items       *chartSchema            `json:"items"`
	Definitions map[string]*chartSchema `json:"definitions"`
}

// refuses reports whether the schema does not have the key. If the schema does not restrict the content of an object,
// it accepts every key in this object.
func (s *chartSchema) refuses(root *chartSchema, path []string) bool {
	if s.Ref != "" {
		s = root.Definitions[strings.TrimPrefix(s.Ref, "#/definitions/")]
	}
	if s.Items != nil {
		return s.Items.refuses(root, path)
	}
	if len(path) == 0 || s.Properties == nil {
		return false
	}
	next := s.Properties[path[0]]
	return next == nil || next.refuses(root, path[1:])
}

func readChartSchemas(t *testing.T) (schemas []*chartSchema) {
	t.Helper()
	for _, chart := range charts {
		var s chartSchema
		require.NoError(t, json.Unmarshal([]byte(document(t, chart+"/values.schema.json")), &s))
		require.NotEmpty(t, s.Properties)
		schemas = append(schemas, &s)
	}
	return schemas
}

var (
	chartKey     = regexp.MustCompile(`^([a-zA-Z]+(?:\[\])?(?:\.[a-z][a-zA-Z]*(?:\[\])?)+)(?:[:=].*)?$`)
	setKey       = regexp.MustCompile(`--set(?:-string|-file)? '?([a-zA-Z.]+)=`)
	fileOrDomain = regexp.MustCompile(`\.(crt|key|token|yaml|json|go|md|io)$`)
)

// Every chart value that a document names exists in the schema of one of the charts.
func TestDocumentedChartValues(t *testing.T) {
	schemas, found := readChartSchemas(t), 0
	for _, path := range documents(t) {
		var keys []string
		for _, m := range inline.FindAllStringSubmatch(fenced.ReplaceAllString(document(t, path), ""), -1) {
			if key := chartKey.FindStringSubmatch(m[1]); key != nil {
				keys = append(keys, key[1])
			}
		}
		for _, m := range setKey.FindAllStringSubmatch(document(t, path), -1) {
			keys = append(keys, m[1])
		}
		for _, key := range keys {
			keyPath := strings.Split(strings.ReplaceAll(key, "[]", ""), ".")
			of := slices.DeleteFunc(slices.Clone(schemas),
				func(s *chartSchema) bool { return s.Properties[keyPath[0]] == nil })
			if len(of) == 0 || fileOrDomain.MatchString(key) {
				continue // not a key of a chart
			}
			found++
			assert.True(t, slices.ContainsFunc(of, func(s *chartSchema) bool { return !s.refuses(s, keyPath) }),
				"%s: no chart has the value %s", path, key)
		}
	}
	require.Greater(t, found, 60)
}

// If a comment in a chart names a section of a document, the section exists.
func TestSectionsNamedByChartsExist(t *testing.T) {
	named := regexp.MustCompile(`(docs/[a-z-]+\.md)(?:, ([A-Z][\w ]*\w))?`)
	found := 0
	for _, path := range chartTexts {
		for _, m := range named.FindAllStringSubmatch(document(t, path), -1) {
			found++
			text := document(t, m[1])
			assert.True(t, m[2] == "" || slices.ContainsFunc(heading.FindAllStringSubmatch(text, -1),
				func(h []string) bool { return h[1] == m[2] }), "%s names a section that %s does not have: %s", path, m[1], m[2])
		}
	}
	require.NotZero(t, found)
}

// The README of the agent's chart has a row for each permission of the chart, with its verbs and its resources.
func TestDocumentedAgentPermissions(t *testing.T) {
	rule := regexp.MustCompile(`(?s)resources: \[([^\]]+)\](?: #[^\n]*)?\n(?:  resourceNames: \[([^\]]+)\]\n)?  verbs: \[([^\]]+)\]`)
	row := regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \| [^|]+ \|$`)
	readme := row.FindAllStringSubmatch(document(t, charts[1]+"/README.md"), -1)
	template := document(t, charts[1]+"/templates/rbac.yaml")
	rules := rule.FindAllStringSubmatch(template, -1)
	require.Len(t, rules, strings.Count(template, "verbs:"), "each rule is one that this test reads")
	for _, r := range rules {
		words := slices.Concat(strings.Split(r[1], ", "), strings.Split(r[3], ", "))
		if r[2] != "" {
			words = append(words, r[2])
		}
		assert.True(t, slices.ContainsFunc(readme, func(m []string) bool {
			return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(m[1]+m[2], w) })
		}), "no row of the README has %v", words)
	}
}

// TestChartSchemasRefuseUnknownKeys checks the method refuses. The keys are below arrays, below references to
// definitions, and in objects. Known keys are accepted, and unknown keys are refused.
func TestChartSchemasRefuseUnknownKeys(t *testing.T) {
	s := readChartSchemas(t)[0]
	for key, refused := range map[string]bool{
		"worker.replicaCount": false, "worker.replicas": true, "nodeGroups.shape.cpu": false, "nodeGroups.shapes": true,
		"worker.resources.limits.memory": false, "temporal.tls.ca.secretName": false, "temporal.tls.ca.name": true,
	} {
		assert.Equal(t, refused, s.refuses(s, strings.Split(key, ".")), key)
	}
}
