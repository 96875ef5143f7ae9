// Package examples holds the example configuration files for `make run` and for the docs.
package examples

import _ "embed"

// NodeGroups is nodegroups.yaml: the groups "standard" and "gpu".
//
//go:embed nodegroups.yaml
var NodeGroups []byte

// Offers is offers.yaml: the offers of three providers, one of which has GPUs. The Secret with the credentials of a
// provider has the provider's name.
//
//go:embed offers.yaml
var Offers []byte
