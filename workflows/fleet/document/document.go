// Package document refuses YAML documents that the YAML library reads in a way nobody can want.
package document

import (
	"bytes"
	"errors"
	"io"

	goyaml "sigs.k8s.io/yaml/goyaml.v2"
)

// What Check returns.
var (
	// ErrSwollen is a document that aliases make too large: they are written out in memory.
	ErrSwollen = errors.New("its aliases make more than 16 MiB of it: write it without")
	// ErrSeveral is more than one document: those that follow the first one are left out without a word.
	ErrSeveral = errors.New("more than one document is there, of which only the first would be read: keep one")
)

// MaxWritten is how many bytes a document may come to with all its aliases written out.
const MaxWritten = 16 << 20

// Check returns ErrSwollen, ErrSeveral or nil. Of what is not YAML it says nothing: who parses it does.
func Check(raw []byte) error {
	d := goyaml.NewDecoder(bytes.NewReader(raw))
	var content any
	if d.Decode(&content) != nil {
		return nil //nolint:nilerr // see above
	}
	if written(content, MaxWritten) < 0 {
		return ErrSwollen
	}
	for {
		var more any
		switch err := d.Decode(&more); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil || more != nil:
			return ErrSeveral
		}
	}
}

// written is what is left of so many bytes when content is written; negative when they are not enough.
func written(content any, left int) int {
	left -= 2
	switch c := content.(type) {
	case string:
		left -= len(c)
	case []any:
		for _, item := range c {
			if left = written(item, left); left < 0 {
				break
			}
		}
	case map[any]any:
		for key, item := range c {
			if left = written(item, written(key, left)); left < 0 {
				break
			}
		}
	}
	return left
}
