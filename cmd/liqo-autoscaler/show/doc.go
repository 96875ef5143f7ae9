// Package show renders the state of a hub: as the documents that `status` and `offers` print with -o json or yaml,
// and as tables. The documents are stable: later versions may only add fields.
package show
