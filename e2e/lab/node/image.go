package node

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Image is the image for the suites' own pods. It is also the image for the first process (pause) of each pod. It
// contains only the program lab/box, as /box. No registry contains the image.
const Image = "localhost/box:1"

// EnvBox is the environment variable with the path of the program lab/box, which must be built without cgo.
const EnvBox = "LIQO_AUTOSCALER_LAB_BOX"

// importBox makes the image Image and imports it into containerd.
func importBox(ctx context.Context) error {
	program := os.Getenv(EnvBox)
	if program == "" {
		return fmt.Errorf("make image: %s is not the program lab/box", EnvBox)
	}
	return Import(ctx, Image, map[string]string{"box": program}, v1.Config{Entrypoint: []string{"/box"},
		Cmd: []string{"pause"}, Env: []string{"PATH=/"}})
}

// Import makes an image of one layer and imports it into containerd, as an administrator imports the tar file of an
// image on a node without a registry. The keys of files are the paths of files in the image, and the values are
// executable files of the machine.
func Import(ctx context.Context, image string, files map[string]string, config v1.Config) error {
	tag, err := name.NewTag(image)
	if err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	made, err := imageOf(files, config)
	if err != nil {
		return fmt.Errorf("make image %s: %w", image, err)
	}
	path := filepath.Join("/run", "image.tar")
	if err := tarball.WriteToFile(path, tag, made); err != nil {
		return fmt.Errorf("make image %s: %w", image, err)
	}
	defer func() { _ = os.Remove(path) }()
	out, err := exec.CommandContext(ctx, "ctr", "-n", "k8s.io", "images", "import", path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("import image %s: %w: %s", image, err, out)
	}
	return nil
}

// imageOf returns an image with one layer that contains the files.
func imageOf(files map[string]string, config v1.Config) (v1.Image, error) {
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		program, err := os.ReadFile(files[path])
		if err != nil {
			return nil, err
		}
		if err := w.WriteHeader(&tar.Header{Name: path, Mode: 0o755, Size: int64(len(program))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(program); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content.Bytes())), nil
	})
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Config = runtime.GOARCH, "linux", config
	return mutate.ConfigFile(image, file)
}
