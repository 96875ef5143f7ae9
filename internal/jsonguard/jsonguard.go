// Package jsonguard checks JSON from untrusted parties before a decoder reads it. Otherwise a small document could
// make the decoder use much memory, or minutes of CPU time.
package jsonguard

import (
	"errors"
	"io"
	"strings"
)

// ErrTooMuch means that a document exceeds its Limits, or has too many levels. In decoded form it would need much
// more memory than its text.
var ErrTooMuch = errors.New("has too many lists, fields or levels")

// Limits bounds the document; 0 means no bound.
type Limits struct {
	// Elements bounds the number of elements of all lists together. An element of three bytes, "{},", may be decoded
	// into a struct of hundreds of bytes.
	Elements int
	// Fields bounds the number of fields of all objects together.
	Fields int
}

// maxDepth is the maximum nesting depth that encoding/json accepts.
const maxDepth = 10000

// Reader passes JSON through, including several documents in sequence. Read returns the errors of the source, and
// ErrTooMuch.
//
// Reader also shortens long quantities in fields of Kubernetes: it replaces their ends by blanks.
// resource.ParseQuantity, and all computations with its result, use as many digits as the text specifies. For
// 1e100000000 they take minutes.
type Reader struct {
	from   io.Reader
	limits Limits

	elements, fields int
	nesting          []level
	text             text
	amount           amount
	broken           error
}

// level is a list or an object that is open at the current position.
type level struct {
	list    bool
	key     bool // for an object: the next string is a key
	empty   bool // no element has been read yet
	amounts bool // values in it may be quantities
}

// text is the state of the string that is being read.
type text struct {
	inside, escaped, key bool
	name                 []byte // beginning of a key
	strange              bool   // the key has escapes, so it may be any name
}

// amount is the state of the quantity that is being read.
type amount struct {
	size, digits int  // characters in total, and digits in its exponent
	exponent     bool // the exponent has begun
	other        bool // the value is not a quantity
	tooLong      bool // the quantity is too long: its remaining bytes are replaced by blanks
}

// These constants bound a quantity, in characters. A shortened quantity stays valid: if its exponent may not fit,
// Reader removes the whole exponent.
const (
	maxAmount   = 64
	maxExponent = 2
)

// amountKeys contains, in lower case, the fields in which Kubernetes, Liqo and offers have maps of quantities.
var amountKeys = map[string]bool{"resources": true, "limits": true, "requests": true, "capacity": true,
	"allocatable": true, "allocatedresources": true, "resourcequota": true, "hard": true, "used": true, "lendable": true}

const maxAmountKey = 24

// New returns a Reader that reads from the source and applies the limits.
func New(from io.Reader, limits Limits) *Reader { return &Reader{from: from, limits: limits} }

// Read implements io.Reader.
func (r *Reader) Read(into []byte) (int, error) {
	if r.broken != nil {
		return 0, r.broken
	}
	n, err := r.from.Read(into)
	for i := range into[:n] {
		into[i] = r.next(into[i])
	}
	if r.broken != nil {
		return 0, r.broken
	}
	return n, err
}

// next processes one byte and returns its replacement.
func (r *Reader) next(c byte) byte {
	if r.text.inside {
		return r.inText(c)
	}
	switch c {
	case '"':
		r.countValue()
		top := r.top()
		r.text = text{inside: true, key: top != nil && !top.list && top.key, name: r.text.name[:0]}
		r.amount = amount{}
	case '{', '[':
		r.countValue()
		r.begin(c == '[')
	case '}', ']':
		r.nesting = r.nesting[:max(len(r.nesting)-1, 0)]
	case ',', ':':
		r.separate(c == ',')
	case ' ', '\t', '\n', '\r':
	default:
		r.countValue()
		return r.inAmount(c)
	}
	return c
}

// separate processes a comma between two values, or a colon between a key and its value.
func (r *Reader) separate(values bool) {
	r.amount = amount{}
	if top := r.top(); top != nil {
		top.key, top.empty = values, top.empty || values
	}
}

// countValue counts an element or a field when its first byte is read. If a limit is exceeded, it sets ErrTooMuch.
func (r *Reader) countValue() {
	top := r.top()
	if top == nil || !top.empty {
		return
	}
	top.empty = false
	if top.list {
		r.elements++
	} else {
		r.fields++
	}
	if l := r.limits; l.Elements > 0 && r.elements > l.Elements || l.Fields > 0 && r.fields > l.Fields {
		r.broken = ErrTooMuch
	}
}

// begin processes the opening byte of a list or an object.
func (r *Reader) begin(list bool) {
	if len(r.nesting) == maxDepth {
		r.broken = ErrTooMuch
		return
	}
	inner := level{list: list, key: !list, empty: true}
	if top := r.top(); top != nil {
		inner.amounts = top.amounts || !top.list && (r.text.strange || amountKeys[strings.ToLower(string(r.text.name))])
	}
	r.nesting = append(r.nesting, inner)
}

func (r *Reader) top() *level {
	if len(r.nesting) == 0 {
		return nil
	}
	return &r.nesting[len(r.nesting)-1]
}

// inText processes one byte of a string, and returns its replacement.
func (r *Reader) inText(c byte) byte {
	t := &r.text
	switch {
	case t.escaped:
		t.escaped = false
	case c == '\\':
		t.escaped, r.amount.other = true, true
		t.strange = t.strange || t.key
	case c == '"':
		t.inside = false
	case t.key:
		if len(t.name) < maxAmountKey {
			t.name = append(t.name, c)
		}
	default:
		return r.inAmount(c)
	}
	return c
}

// inAmount processes one byte of a possible quantity, and returns its replacement.
func (r *Reader) inAmount(c byte) byte {
	top, a := r.top(), &r.amount
	if top == nil || !top.amounts || a.other {
		return c
	}
	a.take(c)
	if a.tooLong = a.tooLong || a.size > maxAmount || a.digits > maxExponent; a.tooLong {
		return ' '
	}
	return c
}

// take updates the state of the quantity with its next byte.
func (a *amount) take(c byte) {
	a.size++
	switch c {
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if a.exponent {
			a.digits++
		}
	case 'e', 'E':
		a.other, a.exponent = a.exponent, true
		a.tooLong = a.tooLong || a.size > maxAmount-4
	case '.', '+', '-':
	case ' ', '\t', '\n', '\r':
		a.size--
	default:
		a.other = c < 0x80 && !a.tooLong // the rest may be Unicode spaces, which are trimmed
	}
}
