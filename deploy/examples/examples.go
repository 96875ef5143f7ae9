// Package examples holds the example configuration files: what `make run` uses, and what the docs quote.
package examples

import _ "embed"

// NodeGroups is nodegroups.yaml: the groups "standard" and "gpu".
//
//go:embed nodegroups.yaml
var NodeGroups []byte

// Offers is offers.yaml: three providers, one of them with GPUs. Their credentials are Secrets named as they are.
//
//go:embed offers.yaml
var Offers []byte
