// Package examples holds the example configuration files: what `make run` uses, and what the docs quote.
package examples

import _ "embed"

// NodeGroups is nodegroups.yaml: one group, "standard".
//
//go:embed nodegroups.yaml
var NodeGroups []byte

// Offers is offers.yaml: two providers.
//
//go:embed offers.yaml
var Offers []byte

// Providers are the Liqo cluster ids of the sample offers, which are their names too.
var Providers = []string{"milan", "turin"}
