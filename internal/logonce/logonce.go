// Package logonce limits how often a process logs the same fault.
package logonce

// LastError remembers the text of the last error. The zero value is ready for use. It is not safe for concurrent use.
type LastError struct{ last string }

// IsNew reports whether the error's text differs from the remembered text, and remembers the new text. It returns false
// for nil, and the error after nil is always new.
func (o *LastError) IsNew(err error) bool {
	text := ""
	if err != nil {
		text = err.Error()
	}
	is := text != "" && text != o.last
	o.last = text
	return is
}
