package pair

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// file is a file that setup writes, or would write.
type file struct {
	path    string
	content string
	has     string // the present content of the file
	exists  bool
}

// read reads the present content of the file. It returns an error if the file cannot be written.
func (f *file) read() error {
	raw, err := os.ReadFile(f.path)
	switch {
	case err == nil:
		f.has, f.exists = string(raw), true
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if folder, err := os.Stat(filepath.Dir(f.path)); err != nil || !folder.IsDir() {
		return fmt.Errorf("%s cannot be written: create the folder %s", f.path, filepath.Dir(f.path))
	}
	return nil
}

// write creates the file if it does not exist. It never changes an existing file, but prints the differences to out.
func (f *file) write(out io.Writer, mode fs.FileMode, dry bool) error {
	switch {
	case f.exists && f.has == f.content:
		fmt.Fprintf(out, "%s: unchanged\n", f.path)
		return nil
	case f.exists:
		fmt.Fprintf(out, "%s: exists and is not changed; setup would write (- the file, + setup):\n%s", f.path,
			diff(f.has, f.content))
		return nil
	case dry:
		fmt.Fprintf(out, "%s: would be written\n", f.path)
		return nil
	}
	to, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = to.WriteString(f.content)
	if err = errors.Join(err, to.Close()); err != nil {
		_ = os.Remove(f.path)
		return err
	}
	fmt.Fprintf(out, "%s: written\n", f.path)
	return nil
}
