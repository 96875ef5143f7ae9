// Package output prints documents as a table, a wide table, JSON or YAML.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Formats are the values of -o.
var Formats = []string{"table", "wide", "json", "yaml"}

// CheckFormat refuses a format that is not in Formats.
func CheckFormat(format string) error {
	if slices.Contains(Formats, format) {
		return nil
	}
	return fmt.Errorf("--output %q: use %s", format, strings.Join(Formats, ", "))
}

// Document can be printed as a table.
type Document interface {
	Table(out io.Writer, style Style) error
}

// Print prints the document in one of Formats.
func Print(out io.Writer, format string, style Style, d Document) error {
	switch format {
	case "json":
		return JSON(out, d)
	case "yaml":
		return YAML(out, d)
	default:
		style.Wide = format == "wide"
		return d.Table(out, style)
	}
}

// JSON prints v, indented.
func JSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// YAML prints v with its JSON field names.
func YAML(out io.Writer, v any) error {
	text, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("make YAML: %w", err)
	}
	_, err = out.Write(text)
	return err
}
