package lab

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// EnvLiqoSource names a folder with Liqo's source, which the lab builds in place of the version of Liqo. The lab still
// derives the features of this source, such as several slices for each provider, from the version.
const EnvLiqoSource = "LIQO_SOURCE"

// liqoModule is the path of Liqo's Go module.
const liqoModule = "github.com/liqotech/liqo"

// builtFrom lists the parts of Liqo's source that affect its binaries and its chart. A change in another part, such as
// a test suite or a document, does not cause a new build.
var builtFrom = []string{"apis", "cmd", "deployments/liqo", "internal", "pkg", "go.mod", "go.sum"}

var declaresLiqo = regexp.MustCompile(`(?m)^module\s+` + regexp.QuoteMeta(liqoModule) + `\s*$`)

// liqoSource returns the absolute path of a folder with Liqo's source, and a digest of the parts that are built.
func liqoSource(dir string) (abs, digest string, err error) {
	if abs, err = filepath.Abs(dir); err != nil {
		return "", "", fmt.Errorf("find %s=%s: %w", EnvLiqoSource, dir, err)
	}
	text, err := os.ReadFile(filepath.Join(abs, "go.mod"))
	if err != nil {
		return "", "", fmt.Errorf("%s=%s must be a folder with Liqo's source: %w", EnvLiqoSource, dir, err)
	}
	if !declaresLiqo.Match(text) {
		return "", "", fmt.Errorf("%s=%s must be a folder with Liqo's source, but its go.mod does not declare %s",
			EnvLiqoSource, dir, liqoModule)
	}
	sum := sha256.New()
	for _, part := range builtFrom {
		if err := addTree(sum, abs, part); err != nil {
			return "", "", fmt.Errorf("read Liqo's source: %w", err)
		}
	}
	return abs, hex.EncodeToString(sum.Sum(nil))[:12], nil
}

// addTree adds the names and contents of the files below a path to a digest, in the order of their names. A path that
// does not exist adds nothing.
func addTree(sum io.Writer, root, part string) error {
	var files []string
	err := filepath.WalkDir(filepath.Join(root, part), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	slices.Sort(files)
	for _, path := range files {
		text, readErr := os.ReadFile(path)
		if readErr != nil {
			return readErr
		}
		name, _ := filepath.Rel(root, path)
		fmt.Fprintf(sum, "%s %d\n", name, len(text))
		_, _ = sum.Write(text)
	}
	return err
}
