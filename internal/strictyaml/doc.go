// Package strictyaml reads YAML and JSON that people have written. It refuses unknown and repeated keys, wrong types,
// NaN and infinite numbers, several documents, and aliases that expand to a huge document. It reports all faults
// together. Each fault has its line, the path of its field ("offers[1].lendable.cpu") and the remedy.
//
// Read parses, Decode fills a struct, Rules.Check validates it, and Faults.Locate adds the lines.
package strictyaml
