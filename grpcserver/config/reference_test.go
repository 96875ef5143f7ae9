package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/examples"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/golden"
)

func TestDocumentedConfigurationIsTheSchema(t *testing.T) {
	const page = "../../docs/configuration.md"
	got := "# Configuration of node groups\n\nGenerated from the types by `make update`.\n\n" + reference() +
		"\nUnknown fields are refused. `liqo-autoscaler config validate FILE` reports all errors in one run,\n" +
		"`config view` shows the file with its defaults applied, and `config schema` prints the JSON Schema.\n" +
		"`config diff FILE` shows the effect of a changed file on the running groups. It exits with 1\n" +
		"if a value has no effect.\n\n" +
		"The groups of `make run`:\n\n```yaml\n" + string(examples.NodeGroups) + "```\n"
	golden.Check(t, page, got)
}

// reference returns the schema as a Markdown table, with a row per field in the order of the paths.
func reference() string {
	var b strings.Builder
	b.WriteString("| field | kind | purpose |\n|---|---|---|\n")
	rows(&b, generateSchema(), "")
	return b.String()
}

func rows(b *strings.Builder, s map[string]any, path string) {
	if path != "" {
		text, _ := s["description"].(string)
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", path, kindText(s), strings.ReplaceAll(text, "|", "\\|"))
	}
	if properties, ok := s["properties"].(map[string]any); ok {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if path == "" && name == "defaults" {
				fmt.Fprintf(b, "| `defaults` | object | %s It takes the fields of `nodeGroups[]`, but not `id`. |\n",
					about["defaults"])
				continue
			}
			rows(b, properties[name].(map[string]any), strictyaml.Join(path, name))
		}
	}
	if items, ok := s["items"].(map[string]any); ok && items["properties"] != nil {
		rows(b, items, path+"[]")
	}
}

func kindText(s map[string]any) string {
	if values, ok := s["enum"].([]string); ok {
		quoted := make([]string, 0, len(values))
		for _, v := range values {
			if v == "" {
				v = `""`
			}
			quoted = append(quoted, v)
		}
		return "one of " + strings.Join(quoted, ", ")
	}
	switch s["pattern"] {
	case strictyaml.QuantityPattern:
		return "quantity"
	case durationPattern:
		return "duration"
	}
	switch {
	case s["type"] == "array":
		return "list"
	case s["additionalProperties"] != nil && s["properties"] == nil:
		return "map"
	}
	kind := fmt.Sprint(s["type"])
	if lo, ok := s["minimum"]; ok {
		kind += fmt.Sprintf(", at least %v", lo)
	}
	if lo, ok := s["exclusiveMinimum"]; ok {
		kind += fmt.Sprintf(", more than %v", lo)
	}
	if hi, ok := s["maximum"]; ok {
		kind += fmt.Sprintf(", at most %v", hi)
	}
	return kind
}
