package bundled

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// restricted runs a command under the same restrictions as a container of the pod. The user has no name and no
// capabilities, and all files except one folder are read-only.
const restricted = `
mount --make-rprivate /
mount --bind / /mnt
mount -o remount,ro,bind /mnt
mount --rbind /proc /mnt/proc
mount --rbind /dev /mnt/dev
mount --bind "$1" "/mnt$1"
shift
exec chroot /mnt setpriv --reuid 65532 --regid 65532 --groups 65532 --no-new-privs --bounding-set=-all --inh-caps=-all \
	env -i "$@"`

// TestRestricted starts Temporal with the security context of the chart.
func TestRestricted(t *testing.T) {
	s := newStack(t, "bundled-restricted")
	out, err := exec.CommandContext(t.Context(), "unshare", "-m", "mount", "--make-rprivate", "/").CombinedOutput()
	if err != nil {
		t.Skipf("mounts file systems: %v: %s", err, out)
	}
	link := filepath.Join(s.dir, "bin", "temporal-server")
	server, err := filepath.EvalSymlinks(link)
	require.NoError(t, err)
	info, err := buildinfo.ReadFile(server)
	require.NoError(t, err)
	for _, setting := range info.Settings {
		if setting.Key == "CGO_ENABLED" && setting.Value != "0" {
			t.Skipf("%s was built with cgo, and the image's without: remove it", server)
		}
	}
	require.NoError(t, os.Remove(link))
	binary, err := os.ReadFile(server)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(link, binary, 0o755)) // only its owner may enter the folder of the original
	require.NoError(t, os.Chmod(filepath.Join(s.dir, "config", "dynamic.yaml"), 0o644))
	require.NoError(t, os.Chown(s.data, 0, 65532)) // fsGroup sets the same owner
	require.NoError(t, os.Chmod(s.data, 0o2775))

	spec := s.specs["temporal"]
	command := append(append(spec.Env, spec.Path), spec.Args...)
	spec.Path, spec.Env = "unshare", nil
	spec.Args = append([]string{"-m", "sh", "-ec", restricted, "sh", s.data}, command...)
	s.specs["temporal"] = spec
	s.becomesReady(t)
	s.grows(2)
}
