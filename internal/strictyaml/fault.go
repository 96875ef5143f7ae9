package strictyaml

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// Fault is one fault of a document.
type Fault struct {
	// Path is the path of the field; empty for the whole document.
	Path string
	// Message states the fault and the remedy.
	Message string
	// Line is the line where the field begins, or 0 if it is unknown. If the field is missing, it is the line of the
	// innermost enclosing field that exists.
	Line int
	// Against is the path of the field with which this field was compared, or "".
	Against string
	// Unknown is true if the document contains a field that it may not have.
	Unknown bool
}

func (f Fault) Error() string {
	text := f.Message
	if f.Path != "" {
		text = f.Path + ": " + text
	}
	if f.Line > 0 {
		text = fmt.Sprintf("line %d: %s", f.Line, text)
	}
	return text
}

// Faults lists all faults of a document, as one error.
type Faults []Fault

// These constants bound the text of Faults.Error: the number of lines, and the characters in a line.
const (
	maxLines = 40
	maxLine  = 500
)

// Error implements error. The text has one line for each fault, but at most 40 lines of at most 500 characters, because
// it may become part of workflow histories and logs.
func (f Faults) Error() string {
	lines := make([]string, 0, min(len(f), maxLines+1))
	for i, one := range f {
		if i == maxLines {
			lines = append(lines, fmt.Sprintf("and %d more", len(f)-maxLines))
			break
		}
		lines = append(lines, shorten.To(one.Error(), maxLine))
	}
	return strings.Join(lines, "\n")
}

// Err returns the faults as an error, or nil without faults.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// Add appends a fault.
func (f *Faults) Add(path, format string, args ...any) {
	*f = append(*f, Fault{Path: path, Message: fmt.Sprintf(format, args...)})
}

// WithoutUnknown returns all faults except those about unknown fields. A document for a later version may have such
// fields.
func (f Faults) WithoutUnknown() Faults {
	return slices.DeleteFunc(slices.Clone(f), func(one Fault) bool { return one.Unknown })
}

// And appends the faults of a later check. It omits a later fault that may only be a consequence of an earlier one. It
// therefore omits the later faults of a field that already has a fault. It also omits the faults of fields within such
// a field, and of fields that were compared with such a field.
func (f Faults) And(later Faults) Faults {
	known := map[string]bool{}
	for _, one := range f {
		known[one.Path] = true
	}
	for _, one := range later {
		if !isWithin(one.Path, known) && !isWithin(one.Against, known) {
			f = append(f, one)
		}
	}
	return f
}

func isWithin(path string, known map[string]bool) bool {
	for outer := range Outward(path) {
		if known[outer] {
			return true
		}
	}
	return false
}

// Locate sets the line of each fault, and sorts the faults by their position in text. If text is a single line,
// Locate leaves the lines at 0.
func (f Faults) Locate(text []byte) Faults {
	if len(f) == 0 {
		return f
	}
	paths, column := map[string]bool{}, make(map[string]int, len(f))
	for _, one := range f {
		for outer := range Outward(one.Path) {
			paths[outer] = true
		}
	}
	all := positions(text, paths)
	oneLine := !bytes.Contains(bytes.TrimSpace(text), []byte("\n"))
	for i := range f {
		for outer := range Outward(f[i].Path) {
			if at, ok := all[outer]; ok {
				f[i].Line, column[f[i].Path] = at.Line, at.Column
				break
			}
		}
		if oneLine {
			f[i].Line = 0
		}
	}
	slices.SortStableFunc(f, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(column[a.Path], column[b.Path]),
			strings.Compare(a.Path, b.Path))
	})
	return f
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Join returns the path of a key within the mapping at path: path.key, or path["odd/key"].
func Join(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

// Outward yields the path and then the paths of its enclosing fields, the innermost first.
func Outward(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for end := len(path); end > 0; end = strings.LastIndexAny(path[:end], ".[") {
			if !yield(path[:end]) {
				return
			}
		}
	}
}
