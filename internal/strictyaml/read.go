package strictyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	goyaml "sigs.k8s.io/yaml/goyaml.v2"
	goyamlv3 "sigs.k8s.io/yaml/goyaml.v3"
)

// maxExpanded bounds the size of a document with all its aliases expanded, in bytes.
const maxExpanded = 16 << 20

// ErrAliases means that the aliases of a document expand to more than maxExpanded bytes.
var ErrAliases = errors.New("YAML aliases expand to more than 16 MiB: remove them")

// slashes replaces \/, the only escape of JSON that YAML 1.1 does not have.
var slashes = strings.NewReplacer(`\\`, `\\`, `\/`, `/`)

// Read parses text, which must contain at most one document. The document must be a mapping. Read returns nil for an
// empty document. If Read returns an error, it returns nothing else. Repeated keys, NaN and infinite numbers are
// faults and not errors: Read then also returns the other parts of the document.
func Read(text []byte) (map[string]any, Faults, error) {
	if json.Valid(text) {
		text = []byte(slashes.Replace(string(text)))
	}
	decoder := goyaml.NewDecoder(bytes.NewReader(text))
	decoder.SetStrict(true)
	var content any
	var faults Faults
	err := decoder.Decode(&content)
	if repeated := (*goyaml.TypeError)(nil); errors.As(err, &repeated) {
		faults = repeatedKeys(repeated)
	} else if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, syntaxError(err)
	}
	r := reader{left: maxExpanded}
	tree := r.plain(content, func() string { return "" })
	if r.left < 0 {
		return nil, nil, Faults{{Message: ErrAliases.Error()}}
	}
	if another(decoder) {
		return nil, nil, Faults{{Message: "more than one YAML document: keep only one"}}
	}
	if tree == nil {
		return nil, append(faults, r.faults...), nil
	}
	var wrong Faults
	mapping, _ := expect[map[string]any](&wrong, "", tree, wantMapping)
	return mapping, append(faults, r.faults...), wrong.Err()
}

func syntaxError(err error) Faults {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if strings.Contains(text, "excessive aliasing") {
		text = ErrAliases.Error()
	} else {
		text = "not YAML: " + text + ": fix the syntax there"
	}
	return Faults{{Message: text}}
}

// CheckAliases returns ErrAliases if the aliases of the document expand to more than maxExpanded bytes. It is for
// callers that pass the document to a reader that has no such limit.
func CheckAliases(text []byte) error {
	var content any
	_ = goyaml.NewDecoder(bytes.NewReader(text)).Decode(&content)
	r := reader{left: maxExpanded}
	if r.plain(content, func() string { return "" }); r.left < 0 {
		return ErrAliases
	}
	return nil
}

// another reports whether the decoder has a further document with content.
func another(decoder *goyaml.Decoder) bool {
	for {
		var more any
		switch err := decoder.Decode(&more); {
		case errors.Is(err, io.EOF):
			return false
		case err != nil || more != nil:
			return true
		}
	}
}

var lineOf = regexp.MustCompile(`^line (\d+): `)

func repeatedKeys(err *goyaml.TypeError) (faults Faults) {
	for _, text := range err.Errors {
		text = strings.TrimSuffix(text, " already set in map")
		fault := Fault{Message: lineOf.ReplaceAllString(text, "") + " is given twice: keep one"}
		if line := lineOf.FindStringSubmatch(text); line != nil {
			fault.Line, _ = strconv.Atoi(line[1])
		}
		faults = append(faults, fault)
	}
	return faults
}

// reader converts the YAML library's values into values of JSON.
type reader struct {
	left   int // the remaining bytes of maxExpanded; negative for a document that is too large
	faults Faults
}

// plain converts a value. It calls the function path only for a number with a fault, because the paths of all nodes of
// a large document would need too much memory.
func (r *reader) plain(in any, path func() string) any {
	if r.left -= 2; r.left < 0 {
		return nil
	}
	switch v := in.(type) {
	case string:
		r.left -= len(v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			if len(r.faults) < maxLines {
				r.faults.Add(path(), "got %v, want a finite number", v)
			}
			return nil
		}
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = r.plain(item, func() string { return index(path(), i) })
		}
		return out
	case map[any]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			name := fmt.Sprint(key)
			r.left -= len(name) + 2
			out[name] = r.plain(item, func() string { return Join(path(), name) })
		}
		return out
	}
	return in
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// positions returns a YAML node for each path. The node has the position at which the path's field begins: for a
// field of a mapping, this is the node of the key.
func positions(text []byte, paths map[string]bool) map[string]*goyamlv3.Node {
	all := map[string]*goyamlv3.Node{}
	var root goyamlv3.Node
	if goyamlv3.Unmarshal(text, &root) != nil { // the lines stay unknown
		return all
	}
	var walk func(path string, n *goyamlv3.Node)
	found := func(path string, at, value *goyamlv3.Node) {
		if paths[path] && all[path] == nil { // of repeated keys, the first one has the position
			all[path] = at
			walk(path, value)
		}
	}
	walk = func(path string, n *goyamlv3.Node) {
		for i, child := range n.Content {
			switch {
			case n.Kind == goyamlv3.DocumentNode:
				walk("", child)
			case n.Kind == goyamlv3.SequenceNode:
				found(index(path, i), child, child)
			case i%2 == 1: // a value of a mapping
				found(Join(path, n.Content[i-1].Value), n.Content[i-1], child)
			}
		}
	}
	walk("", &root)
	return all
}
