// Package show is how the fleet is shown to people and programs: the documents that `status` and `offers` print with
// -o json or yaml, and the tables made of them. The documents are stable: fields are only ever added.
package show
