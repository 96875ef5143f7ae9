package config

import (
	_ "embed"
	"encoding/json"
)

//go:embed schema.json
var schemaJSON []byte

// Schema returns the JSON Schema (2020-12) of the file, which make update generates from the types. Only Parse checks
// rules that relate several fields.
func Schema() json.RawMessage { return schemaJSON }
