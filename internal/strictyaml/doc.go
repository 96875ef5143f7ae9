// Package strictyaml reads YAML and JSON written by people. It refuses unknown and repeated keys, wrong types, numbers
// that JSON does not have, several documents and alias bombs. It reports all faults together, each with the line, the
// path of its field ("offers[1].lendable.cpu") and the remedy.
//
// Read parses, Decode fills a struct, Rules.Check validates it, and Faults.Locate adds the lines.
package strictyaml
