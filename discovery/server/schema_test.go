package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// contract is the parsed openapi.yaml, against which the tests check answers.
type contract map[string]any

func loadContract(t *testing.T) contract {
	t.Helper()
	var c contract
	require.NoError(t, yaml.UnmarshalStrict(openapiDocument, &c))
	return c
}

func (c contract) at(path ...string) map[string]any {
	var here any = map[string]any(c)
	for _, key := range path {
		m, ok := here.(map[string]any)
		if !ok {
			return nil
		}
		here = m[key]
	}
	m, _ := here.(map[string]any)
	return c.deref(m)
}

func (c contract) deref(m map[string]any) map[string]any {
	if ref, ok := m["$ref"].(string); ok {
		return c.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return m
}

// answer checks that the operation documents the answer's status, type and body.
func (c contract) answer(method, path string, status int, contentType string, body []byte) error {
	documented := c.at("paths", path, strings.ToLower(method), "responses", strconv.Itoa(status))
	if documented == nil {
		return fmt.Errorf("%s %s: status %d is not documented", method, path, status)
	}
	content, _ := documented["content"].(map[string]any)
	if content == nil {
		if len(body) > 0 {
			return fmt.Errorf("%s %s %d: a body is not documented: %s", method, path, status, body)
		}
		return nil
	}
	media, ok := content[contentType].(map[string]any)
	if !ok {
		return fmt.Errorf("%s %s %d: content type %q is not documented", method, path, status, contentType)
	}
	schema, ok := media["schema"].(map[string]any)
	if !ok {
		return nil
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return fmt.Errorf("%s %s %d: %w", method, path, status, err)
	}
	return c.check(c.deref(schema), value, "body")
}

// check implements the keywords of JSON Schema that openapi.yaml uses. An unknown keyword is an error.
func (c contract) check(schema map[string]any, value any, path string) error {
	for keyword := range schema {
		if !slices.Contains([]string{"type", "properties", "additionalProperties", "required", "items", "enum", "minimum",
			"maximum",
			"maxLength", "maxProperties", "format", "default", "description"}, keyword) {
			return fmt.Errorf("%s: the test does not know keyword %s", path, keyword)
		}
	}
	if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, value) {
		return fmt.Errorf("%s: %v is not one of %v", path, value, enum)
	}
	types, ok := schema["type"].([]any)
	if !ok {
		types = []any{schema["type"]}
	}
	if !slices.ContainsFunc(types, func(t any) bool { return isA(t, value) }) {
		return fmt.Errorf("%s: %v is not a %v", path, value, types)
	}
	switch v := value.(type) {
	case []any:
		items, _ := schema["items"].(map[string]any)
		for i, item := range v {
			if err := c.check(c.deref(items), item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		return c.object(schema, v, path)
	}
	return nil
}

func (c contract) object(schema, value map[string]any, path string) error {
	required, _ := schema["required"].([]any)
	for _, key := range required {
		if _, ok := value[key.(string)]; !ok {
			return fmt.Errorf("%s.%s is missing", path, key)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for key, item := range value {
		property, known := properties[key].(map[string]any)
		if !known {
			property, known = schema["additionalProperties"].(map[string]any)
		}
		if !known {
			return fmt.Errorf("%s.%s is not documented", path, key)
		}
		if err := c.check(c.deref(property), item, path+"."+key); err != nil {
			return err
		}
	}
	return nil
}

func isA(t, value any) bool {
	switch v := value.(type) {
	case string:
		return t == "string"
	case bool:
		return t == "boolean"
	case float64:
		return t == "number" || t == "integer" && v == float64(int64(v))
	case []any:
		return t == "array"
	case map[string]any:
		return t == "object"
	}
	return false
}
