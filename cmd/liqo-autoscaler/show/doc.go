// Package show renders the fleet for people and programs: the documents that `status` and `offers` print with -o json
// or yaml, and their tables. The documents are stable: fields may only be added.
package show
