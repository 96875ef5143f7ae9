// Package examples holds the example configuration files: what `make run` uses, and what the docs quote.
package examples

import _ "embed"

// NodeGroups is nodegroups.yaml: the groups "standard" and "gpu".
//
//go:embed nodegroups.yaml
var NodeGroups []byte

// Offers is offers.yaml: three providers, of which one has GPUs. Their credentials are Secrets with the providers' names.
//
//go:embed offers.yaml
var Offers []byte
