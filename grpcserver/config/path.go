package config

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// join makes the path of a key: path.key, or path["odd/key"].
func join(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

// without drops the complaints about fields that have one already, or whose content could not be read at all: they would
// only repeat it.
func without(complaints, known []*FieldError) []*FieldError {
	var out []*FieldError
	for _, c := range complaints {
		if !said(c, known) {
			out = append(out, c)
		}
	}
	return out
}

func said(c *FieldError, known []*FieldError) bool {
	for _, k := range known {
		if k.Path == "" {
			continue
		}
		if within(c.Path, k.Path) || c.follows != "" && within(c.follows, k.Path) {
			return true
		}
	}
	return false
}

// within tells whether path is parent or below it.
func within(path, parent string) bool {
	rest, ok := strings.CutPrefix(path, parent)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// comparePaths orders paths as people read the file: nodeGroups[2] before nodeGroups[10].
func comparePaths(a, b string) int {
	for a != "" && b != "" {
		da, db := digits(a), digits(b)
		if da > 0 && db > 0 {
			if c := cmp.Or(cmp.Compare(da, db), strings.Compare(a[:da], b[:db])); c != 0 {
				return c
			}
			a, b = a[da:], b[db:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits counts the leading digits.
func digits(s string) int {
	return len(s) - len(strings.TrimLeft(s, "0123456789"))
}
