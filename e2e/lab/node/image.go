package node

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Image is the image of each container: it contains only the program lab/box as /box. No registry has it.
const Image = "localhost/box:1"

// EnvBox names the file of the program lab/box, built without cgo.
const EnvBox = "LIQO_AUTOSCALER_LAB_BOX"

// importImage makes the image and gives it to containerd.
func importImage(ctx context.Context) error {
	program, err := os.ReadFile(os.Getenv(EnvBox))
	if err != nil {
		return fmt.Errorf("make image (%s is the program lab/box): %w", EnvBox, err)
	}
	image, err := imageOf(program)
	if err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	tag, err := name.NewTag(Image)
	if err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	path := filepath.Join("/run", "box.tar")
	if err := tarball.WriteToFile(path, tag, image); err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	defer func() { _ = os.Remove(path) }()
	out, err := exec.CommandContext(ctx, "ctr", "-n", "k8s.io", "images", "import", path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("import image: %w: %s", err, out)
	}
	return nil
}

// imageOf returns an image of one layer with the program, which is the first process of pods unless a container
// has arguments.
func imageOf(program []byte) (v1.Image, error) {
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	if err := w.WriteHeader(&tar.Header{Name: "box", Mode: 0o755, Size: int64(len(program))}); err != nil {
		return nil, err
	}
	if _, err := w.Write(program); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files.Bytes())), nil
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
	file.Architecture, file.OS = runtime.GOARCH, "linux"
	file.Config = v1.Config{Entrypoint: []string{"/box"}, Cmd: []string{"pause"}, Env: []string{"PATH=/"}}
	return mutate.ConfigFile(image, file)
}
