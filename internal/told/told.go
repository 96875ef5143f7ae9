// Package told keeps a fault that lasts from being told again and again.
package told

// Once remembers what was told last. The zero value has told nothing.
type Once struct{ last string }

// IsNew reports whether the error is another one than the last. After nil, which is none, every error is new.
func (o *Once) IsNew(err error) bool {
	text := ""
	if err != nil {
		text = err.Error()
	}
	is := text != "" && text != o.last
	o.last = text
	return is
}
