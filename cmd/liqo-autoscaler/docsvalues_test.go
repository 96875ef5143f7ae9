package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	yaml "sigs.k8s.io/yaml/goyaml.v3"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/golden"
)

const valuesIntro = `# Values of the charts

` + "`make update`" + ` generates this page from values.yaml and values.schema.json of both charts. Where the column *default* is
empty, the value is empty or null by default. Both charts refuse keys that are not in these tables.
`

// docs/reference/values.md lists every value of our charts with its type, its default and its meaning.
func TestDocumentedValues(t *testing.T) {
	var b strings.Builder
	b.WriteString(valuesIntro)
	for _, chart := range charts {
		rows := chartValues(t, document(t, chart+"/values.yaml"), document(t, chart+"/values.schema.json"))
		fmt.Fprintf(&b, "\n## %s\n\n| value | type | default | meaning |\n|---|---|---|---|\n",
			chart[strings.LastIndex(chart, "/")+1:])
		for _, v := range rows {
			require.NotEmpty(t, v.meaning, "%s: write a comment above %s in values.yaml", chart, v.key)
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", v.key, v.kind, v.standard, inCell(v.meaning))
		}
	}
	golden.Check(t, "../../docs/reference/values.md", b.String())
}

// The meaning in a row consists of the comment above the key and the comment behind it. A comment with an example
// below a value appears in no row.
func TestChartValues(t *testing.T) {
	rows := chartValues(t, `# About the file.

# The number of pods.
replicas: 2 # default: one
# - an example

tls: # a Secret
  # Names that are permitted.
  names: [a, "b"]
  account: {create: true, name: ""}
  limits:
    memory: 1Gi
`, `{"properties": {"replicas": {"type": ["integer", "null"]}, "tls": {"$ref": "#/definitions/tls"}},
  "definitions": {"tls": {"properties": {"names": {"type": "array"}, "limits": {"type": "object"},
    "account": {"$ref": "#/definitions/account"}}}, "account": {"type": "object", "properties": {}}}}`)
	require.Equal(t, []chartValue{
		{"replicas", "integer", "`2`", "The number of pods. Default: one."},
		{"tls", "object", "", "A Secret."},
		{"tls.names", "list", "`[a, \"b\"]`", "Names that are permitted."},
		{"tls.account", "object", "`{create: true, name: \"\"}`", ""},
		{"tls.limits", "object", "`{memory: 1Gi}`", ""},
	}, rows)
}

// chartValue is a row of the reference. standard is the default in backquotes, or "" for an empty value.
type chartValue struct{ key, kind, standard, meaning string }

// usualMeanings describes keys that have the same meaning everywhere. It applies if values.yaml has no comment about
// the key.
var usualMeanings = map[string]string{
	"affinity":            "The affinity of the pods.",
	"annotations":         "Further annotations of the object.",
	"certKey":             "The key of the certificate in the Secret.",
	"enabled":             "Turns this part on.",
	"extraArgs":           "Further arguments of the program.",
	"extraEnv":            "Further environment variables of the container.",
	"extraVolumeMounts":   "Further volume mounts of the container.",
	"extraVolumes":        "Further volumes of the pod.",
	"key":                 "The key in the Secret.",
	"keyKey":              "The key of the private key in the Secret.",
	"nodeSelector":        "The node selector of the pods.",
	"podDisruptionBudget": "The PodDisruptionBudget of the pods.",
	"port":                "The port of the Service.",
	"pullPolicy":          "The pull policy of the image.",
	"replicaCount":        "The number of pods.",
	"resources":           "The resource requests and limits of the container.",
	"secretName":          "The name of the Secret.",
	"serviceAccount":      "The ServiceAccount. Without a name the chart derives it from the name of the release.",
	"tolerations":         "The tolerations of the pods.",
	"type":                "The type of the Service.",
}

// valuesSchema is the part of a chart's schema that describes the types.
type valuesSchema struct {
	Ref         string                   `json:"$ref"`
	Type        any                      `json:"type"` // a string or a list of strings
	Enum        []string                 `json:"enum"`
	AnyOf       []*valuesSchema          `json:"anyOf"`
	Properties  map[string]*valuesSchema `json:"properties"`
	Definitions map[string]*valuesSchema `json:"definitions"`
}

// kind returns the type of the value in words.
func (s *valuesSchema) kind() string {
	var kinds []string
	switch of := s.Type.(type) {
	case string:
		kinds = []string{of}
	case []any:
		for _, kind := range of {
			kinds = append(kinds, fmt.Sprint(kind))
		}
	}
	for _, one := range s.AnyOf {
		kinds = append(kinds, one.kind())
	}
	for _, value := range slices.DeleteFunc(slices.Clone(s.Enum), func(v string) bool { return v == "" }) {
		kinds = append(kinds, "`"+value+"`")
	}
	kinds = slices.DeleteFunc(kinds, func(kind string) bool { return kind == "null" })
	text := cmp.Or(strings.Join(slices.Compact(kinds), " or "), "object")
	return strings.ReplaceAll(text, "array", "list")
}

// chartValues returns a row for each value in a values.yaml, in the order of the file. If a map is written with one
// key per line and the schema names its keys, each key has its own row. Such a map itself has a row only if it has a
// comment. Any other map has one row.
func chartValues(t *testing.T, values, schema string) (rows []chartValue) {
	t.Helper()
	var root valuesSchema
	require.NoError(t, json.Unmarshal([]byte(schema), &root))
	var file yaml.Node
	require.NoError(t, yaml.Unmarshal([]byte(values), &file))
	lines := strings.Split(values, "\n")
	var walk func(path string, node *yaml.Node, s *valuesSchema)
	walk = func(path string, node *yaml.Node, s *valuesSchema) {
		for i := 0; i < len(node.Content); i += 2 {
			name, value := node.Content[i], node.Content[i+1]
			next := s.Properties[name.Value]
			require.NotNil(t, next, "the schema lacks %s%s", path, name.Value)
			if ref, ok := strings.CutPrefix(next.Ref, "#/definitions/"); ok {
				next = root.Definitions[ref]
			}
			row := chartValue{key: path + name.Value, kind: next.kind(),
				meaning: cmp.Or(comment(lines, name), usualMeanings[name.Value])}
			if value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0 && next.Properties != nil {
				if row.meaning != "" {
					rows = append(rows, row)
				}
				walk(row.key+".", value, next)
				continue
			}
			if text := flow(value); !slices.Contains([]string{`""`, "[]", "{}", "null"}, text) {
				row.standard = "`" + text + "`"
			}
			rows = append(rows, row)
		}
	}
	walk("", file.Content[0], &root)
	return rows
}

var behind = regexp.MustCompile(`^[^#]*\s# (.+)$`)

// comment returns the comment lines directly above a key and the comment behind it, as sentences. If several keys are
// on a line, only the first one has a comment.
func comment(lines []string, key *yaml.Node) string {
	if strings.TrimSpace(lines[key.Line-1][:key.Column-1]) != "" {
		return ""
	}
	var above []string
	for at := key.Line - 2; at >= 0; at-- {
		text, ok := strings.CutPrefix(lines[at], strings.Repeat(" ", key.Column-1)+"# ")
		if !ok {
			break
		}
		above = append([]string{strings.TrimSpace(text)}, above...)
	}
	sentences := []string{strings.Join(above, " ")}
	if m := behind.FindStringSubmatch(lines[key.Line-1]); m != nil {
		sentences = append(sentences, m[1])
	}
	for i, text := range sentences {
		if text == "" {
			continue
		}
		sentences[i] = strings.ToUpper(text[:1]) + text[1:]
		if !strings.ContainsAny(text[len(text)-1:], ".:") {
			sentences[i] += "."
		}
	}
	return strings.TrimSpace(strings.Join(sentences, " "))
}

// flow returns a value in one line of YAML.
func flow(node *yaml.Node) string {
	var parts []string
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(node.Content); i += 2 {
			parts = append(parts, node.Content[i].Value+": "+flow(node.Content[i+1]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case yaml.SequenceNode:
		for _, item := range node.Content {
			parts = append(parts, flow(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	if node.Style&yaml.DoubleQuotedStyle != 0 {
		return `"` + node.Value + `"`
	}
	return node.Value
}
