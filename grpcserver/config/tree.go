package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet/document"
)

// parseYAML turns the one document of raw into maps, lists, strings, bools and json.Numbers. Duplicate keys are complaints
// that leave a tree; what is not one YAML document is a complaint without a path and without a tree.
func parseYAML(raw []byte) (any, []*FieldError) {
	if len(raw) > maxSize {
		return nil, whole("the file has %d bytes, more than %d: split it or shorten it", len(raw), maxSize)
	}
	if complaints := misread(raw); complaints != nil {
		return nil, complaints
	}
	var complaints []*FieldError
	asJSON, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		lenient, lenientErr := yaml.YAMLToJSON(raw)
		if lenientErr != nil {
			return nil, whole("not YAML: %s: mend the syntax there", oneLine(lenientErr))
		}
		asJSON = lenient
		complaints = whole("%s: keep one of them", oneLine(err))
		complaints[0].recoverable = true
	}
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, whole("not YAML that can be read: %s", oneLine(err))
	}
	return tree, complaints
}

func whole(format string, args ...any) []*FieldError {
	return []*FieldError{{Message: fmt.Sprintf(format, args...)}}
}

// fatal tells whether there is no tree to look at.
func fatal(complaints []*FieldError) bool {
	for _, c := range complaints {
		if c.Path == "" && !c.recoverable {
			return true
		}
	}
	return false
}

// misread complains about what the YAML library reads in a way nobody can want.
func misread(raw []byte) []*FieldError {
	switch err := document.Check(raw); {
	case errors.Is(err, document.ErrSwollen):
		return whole("the file has more than %d bytes when its aliases are written out: write it without, or use defaults", document.MaxWritten)
	case err != nil:
		return whole("the file holds several YAML documents: keep one, the others would be ignored")
	}
	return nil
}

// oneLine flattens the YAML library's multi-line messages.
func oneLine(err error) string {
	text := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	text = strings.TrimPrefix(text, "yaml: ")
	return strings.Join(strings.Fields(strings.TrimPrefix(text, "unmarshal errors:")), " ")
}
