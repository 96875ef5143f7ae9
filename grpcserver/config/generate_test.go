package config

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/golden"
)

// schemaID is the id of the schema. It is only a name: no server serves a document at this URL.
const schemaID = "https://liqo-autoscaler.io/schemas/nodegroups.json"

func TestSchemaIsUpToDate(t *testing.T) {
	var got bytes.Buffer
	e := json.NewEncoder(&got)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(generateSchema()))
	golden.Check(t, "schema.json", got.String())
}

// generateSchema returns the schema of the types.
func generateSchema() map[string]any {
	s := schemaOf(reflect.TypeFor[Config](), "")
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = schemaID
	s["title"] = "Node groups of liqo-autoscaler"
	s["required"] = []string{"nodeGroups"}
	return s
}

// These are the patterns of durations and names. YAML decodes a duration as text, and a name as text or as a number.
const (
	durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	namePattern     = `^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
)

// schemaOf returns the schema of a type. path is the place at which the type is used, with "*" for the elements of
// lists and maps.
func schemaOf(t reflect.Type, path string) map[string]any {
	s := kindSchema(t, path)
	if text := about[path]; text != "" {
		s["description"] = text
	}
	return s
}

func kindSchema(t reflect.Type, path string) map[string]any {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return map[string]any{"type": []string{"string", "number"}, "pattern": strictyaml.QuantityPattern}
	case reflect.TypeFor[fleet.Term]():
		return map[string]any{"type": []string{"string", "integer"}, "pattern": durationPattern, "minimum": 0, "maximum": 0}
	case reflect.TypeFor[metav1.Duration]():
		return map[string]any{"type": "string", "pattern": durationPattern}
	case reflect.TypeFor[corev1.TaintEffect]():
		effects := []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}
		if strings.HasSuffix(path, ".groupTaint") {
			effects = append(effects, "") // an empty effect removes the effect that the defaults set
		}
		return oneOf(effects...)
	case reflect.TypeFor[fleet.NodeKind]():
		return oneOf(string(fleet.NodesVirtual), string(fleet.NodesMachine))
	case reflect.TypeFor[metav1.LabelSelectorOperator]():
		return oneOf("In", "NotIn", "Exists", "DoesNotExist")
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kindSchema(t.Elem(), path)
	case reflect.Struct:
		return objectSchema(t, path)
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem(), path+".*")}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), path+".*")}
	case reflect.Int:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	default:
		return map[string]any{"type": "string"}
	}
}

func oneOf(values ...string) map[string]any {
	return map[string]any{"type": "string", "enum": values}
}

func objectSchema(t reflect.Type, path string) map[string]any {
	properties := map[string]any{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || f.Type == reflect.TypeFor[*metav1.Time]() {
			continue // fields of an embedded struct are visited separately, and only Kubernetes sets times
		}
		s := schemaOf(f.Type, strictyaml.Join(path, name))
		constrain(s, f.Tag.Get("validate"))
		properties[name] = s
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if required := requiredIn[path]; required != nil {
		s["required"] = required
	}
	return s
}

// A JSON schema validator ignores a keyword that does not apply to the kind of the value. Texts and lists therefore
// need different keywords for their lengths.
func TestLengthsOfTextAndOfLists(t *testing.T) {
	properties := objectSchema(reflect.TypeFor[struct {
		Text string   `json:"text" validate:"min=2,max=200"`
		List []string `json:"list" validate:"min=1,max=20"`
	}](), "")["properties"].(map[string]any)
	require.Equal(t, map[string]any{"type": "string", "minLength": 2, "maxLength": 200}, properties["text"])
	require.Equal(t, map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "minItems": 1,
		"maxItems": 20}, properties["list"])
}

// requiredIn lists the required fields of a group. The defaults may supply all other fields.
var requiredIn = map[string][]string{
	"nodeGroups.*": {"id"}, "nodeGroups.*.sizes.*": {"name"},
	"nodeGroups.*.taints.*": {"key", "effect"}, "defaults.taints.*": {"key", "effect"},
	"nodeGroups.*.selector.matchExpressions.*": {"key", "operator"},
	"defaults.selector.matchExpressions.*":     {"key", "operator"},
}

// constrain adds the constraints of the validator's tags.
func constrain(s map[string]any, tags string) {
	for tag := range strings.SplitSeq(tags, ",") {
		name, value, _ := strings.Cut(tag, "=")
		n, _ := strconv.Atoi(value)
		switch name {
		case "gte":
			s["minimum"] = n
		case "gt":
			s["exclusiveMinimum"] = n
		case "lte":
			s["maximum"] = n
		case "min", "max":
			s[name+map[bool]string{true: "Length", false: "Items"}[s["type"] == "string"]] = n
		case "groupid", "sizename":
			s["pattern"], s["maxLength"] = namePattern, fleet.MaxGroupID
		case "iso4217":
			s["pattern"] = "^[A-Z]{3}$"
		case "hub":
			s["pattern"], s["maxLength"] = namePattern, fleet.MaxHub
		}
	}
}
