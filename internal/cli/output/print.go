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

// Formats lists the values of the flag -o.
var Formats = []string{"table", "wide", "json", "yaml"}

// CheckFormat returns an error if the format is not in Formats.
func CheckFormat(format string) error {
	if slices.Contains(Formats, format) {
		return nil
	}
	return fmt.Errorf("--output %q: use %s", format, strings.Join(Formats, ", "))
}

// Document is a value that can be printed in each of Formats.
type Document interface {
	// Table prints the document as a table. In the formats json and yaml, the document's JSON fields are printed.
	Table(out io.Writer, style Style) error
}

// Print prints the document in the format, which is one of Formats. For an unknown format it prints a table.
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

// JSON prints v as indented JSON.
func JSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// YAML prints v as YAML, with the field names that v has in JSON.
func YAML(out io.Writer, v any) error {
	text, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Errorf("make YAML: %w", err)
	}
	_, err = out.Write(text)
	return err
}
