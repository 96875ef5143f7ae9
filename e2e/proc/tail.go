package proc

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const tailBytes = 64 << 10

// Tail returns the last lines of a file, or a sentence with the reason for which the file cannot be read.
func Tail(path string, lines int) string {
	f, err := os.Open(path)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		_, _ = f.Seek(-tailBytes, io.SeekEnd)
	}
	b, _ := io.ReadAll(io.LimitReader(f, tailBytes))
	all := bytes.Split(bytes.TrimRight(b, "\n"), []byte("\n"))
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return string(bytes.Join(all, []byte("\n")))
}

// Tails returns the last lines of each file *.log in a folder, ordered by file name.
func Tails(dir string, lines int) string {
	paths, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	slices.Sort(paths)
	var out strings.Builder
	for _, p := range paths {
		fmt.Fprintf(&out, "--- %s\n%s\n", filepath.Base(p), Tail(p, lines))
	}
	return out.String()
}
