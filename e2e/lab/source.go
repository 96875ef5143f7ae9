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

// EnvLiqoSource is the environment variable with the path of a folder that contains Liqo's source. If it is set, the
// lab builds this source instead of the selected version of Liqo. The lab assumes that the source has the features of
// the selected version, such as several slices for each provider.
const EnvLiqoSource = "LIQO_SOURCE"

// liqoModule is the path of Liqo's Go module.
const liqoModule = "github.com/liqotech/liqo"

// builtFrom lists the parts of Liqo's source that affect its binaries and its chart. A change in any other part, such
// as a test suite or a document, does not cause a new build.
var builtFrom = []string{"apis", "cmd", "deployments/liqo", "internal", "pkg", "go.mod", "go.sum"}

var declaresLiqo = regexp.MustCompile(`(?m)^module\s+` + regexp.QuoteMeta(liqoModule) + `\s*$`)

// liqoSource returns the absolute path of the folder dir with Liqo's source, and a digest of the parts in builtFrom.
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

// addTree adds the names and contents of all files in the folder root/part to a digest, in the order of the names. If
// the path does not exist, it adds nothing.
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
