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
	// Path is the field's path; empty for the whole document.
	Path string
	// Message states the fault and the remedy.
	Message string
	// Line is the line where the field begins, or the innermost enclosing field that exists; 0 when unknown.
	Line int
	// Against is the path of the field with which this field is compared, if any.
	Against string
	// Unknown is true when the field is not known.
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

// These constants bound Error: the number of lines, and the characters in a line.
const (
	maxLines = 40
	maxLine  = 500
)

// Error has one line per fault. It cuts long lines and only counts the faults after the fortieth, because errors may
// enter workflow histories and logs.
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

// Err returns the faults as an error, nil without faults.
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

// WithoutUnknown returns the faults without the faults of unknown fields, for a document of a later version.
func (f Faults) WithoutUnknown() Faults {
	return slices.DeleteFunc(slices.Clone(f), func(one Fault) bool { return one.Unknown })
}

// And appends the faults of a later check. It omits faults that would repeat an earlier fault: faults of a field with a
// fault, of fields in it, and of fields that are compared with it.
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

// Locate sorts the faults by their position in text, and adds the lines unless text is a single line.
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

// Join returns the path of a key: path.key, or path["odd/key"].
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
