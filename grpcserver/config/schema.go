package config

import (
	_ "embed"
	"encoding/json"
)

//go:embed schema.json
var schemaJSON []byte

// Schema is the JSON Schema (2020-12) of the file, generated from the types by make update. It knows less than Parse:
// rules between fields are not in it.
func Schema() json.RawMessage { return schemaJSON }
