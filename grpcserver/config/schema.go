package config

import (
	_ "embed"
	"encoding/json"
)

//go:embed schema.json
var schemaJSON []byte

// Schema returns the JSON Schema (2020-12) of the file. `make update` generates the schema from the types. The schema
// does not contain the rules that compare several fields; Parse checks these rules.
func Schema() json.RawMessage { return schemaJSON }
