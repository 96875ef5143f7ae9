package reload_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/reload"
)

// rig is two files whose texts are joined to one value. The text "bad" causes an error.
type rig struct {
	t      *testing.T
	a, b   string
	parsed int
}

func newRig(t *testing.T) *rig {
	dir := t.TempDir()
	return &rig{t: t, a: filepath.Join(dir, "a"), b: filepath.Join(dir, "b")}
}

func (r *rig) write(path, content string) {
	require.NoError(r.t, os.WriteFile(path, []byte(content), 0o600))
}

func (r *rig) parse(contents [][]byte) (string, error) {
	r.parsed++
	text := string(bytes.Join(contents, []byte("+")))
	if strings.Contains(text, "bad") {
		return "", errors.New(text)
	}
	return text, nil
}

func TestFilesAreFollowed(t *testing.T) {
	r := newRig(t)
	r.write(r.a, "one")
	_, err := reload.Open(r.parse, r.a, r.b)
	require.ErrorIs(t, err, os.ErrNotExist)
	r.write(r.b, "bad")
	_, err = reload.Open(r.parse, r.a, r.b)
	require.EqualError(t, err, "one+bad")
	r.write(r.b, "two")
	f, err := reload.Open(r.parse, r.a, r.b)
	require.NoError(t, err)

	get := func(want string) (version string, err error) {
		value, version, err := f.Get()
		require.Equal(t, want, value)
		return version, err
	}
	first, err := get("one+two")
	require.NoError(t, err)
	parsed := r.parsed
	again, _ := get("one+two")
	require.Equal(t, first, again)
	require.Equal(t, parsed, r.parsed, "unchanged content is not parsed again")

	r.write(r.b, "three")
	second, err := get("one+three")
	require.NoError(t, err)
	require.NotEqual(t, first, second)

	r.write(r.a, "bad")
	for range 2 {
		version, err := get("one+three")
		require.EqualError(t, err, "bad+three", "until the files are good again")
		require.Equal(t, second, version)
	}
	require.NoError(t, os.Remove(r.a))
	_, err = get("one+three")
	require.ErrorIs(t, err, os.ErrNotExist)

	r.write(r.a, "one")
	version, err := get("one+three")
	require.NoError(t, err)
	require.Equal(t, second, version)
}

// A text moves from one file to the other, so that the texts together stay the same. The version changes.
func TestVersionDistinguishesFiles(t *testing.T) {
	r := newRig(t)
	r.write(r.a, "xy")
	r.write(r.b, "z")
	f, err := reload.Open(r.parse, r.a, r.b)
	require.NoError(t, err)
	r.write(r.a, "x")
	r.write(r.b, "yz")
	value, _, err := f.Get()
	require.NoError(t, err)
	require.Equal(t, "x+yz", value)
}

func TestLargeFilesAreRefused(t *testing.T) {
	r := newRig(t)
	r.write(r.a, strings.Repeat("x", 4<<20))
	_, err := reload.Open(r.parse, r.a)
	require.NoError(t, err)
	r.write(r.a, strings.Repeat("x", 4<<20+1))
	_, err = reload.Open(r.parse, r.a)
	require.EqualError(t, err, r.a+" is larger than 4 MiB: shorten it")
}

func TestLatestLogsEachErrorOnce(t *testing.T) {
	r := newRig(t)
	r.write(r.a, "good")
	f, err := reload.Open(r.parse, r.a)
	require.NoError(t, err)
	var logs bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logs, nil))
	for i, content := range []string{"good", "bad", "bad", "worse bad", "good", "bad"} {
		r.write(r.a, content)
		require.Equal(t, "good", f.Latest(log, "not renewed"))
		require.Equal(t, []int{0, 1, 1, 2, 2, 3}[i], strings.Count(logs.String(), "not renewed"), content)
	}
	require.Contains(t, logs.String(), `level=ERROR msg="not renewed" error="worse bad"`)
}

// The files are replaced while they are read, so that the texts do not belong together. They are read again.
func TestFilesReplacedDuringAReadAreReadAgain(t *testing.T) {
	r := newRig(t)
	r.write(r.a, "one")
	r.write(r.b, "one")
	f, err := reload.Open(func(contents [][]byte) (string, error) {
		if string(contents[0]) != string(contents[1]) {
			r.write(r.b, string(contents[0])) // now both files have the new text
			return "", errors.New("no pair")
		}
		return string(contents[0]), nil
	}, r.a, r.b)
	require.NoError(t, err)
	r.write(r.a, "two")
	value, _, err := f.Get()
	require.NoError(t, err)
	require.Equal(t, "two", value)
}
