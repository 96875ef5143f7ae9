// Package logonce limits how often the same fault is logged.
package logonce

// LastError remembers the last error. The zero value has none.
type LastError struct{ last string }

// IsNew reports whether the error's text differs from the last error's text, and remembers it. nil is not new, and
// makes the next error new.
func (o *LastError) IsNew(err error) bool {
	text := ""
	if err != nil {
		text = err.Error()
	}
	is := text != "" && text != o.last
	o.last = text
	return is
}
