package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sync"
)

// File is a config file that is read again while the server runs. Its content decides, not its times: a mounted ConfigMap
// is a symbolic link that is swapped. Safe for concurrent use.
type File struct {
	path string

	mu   sync.Mutex
	hub  string
	good string // hash of the version in force
	bad  string // hash of a newer version that is broken, with its error
	err  error
}

// Open reads the file for the first time; it must be good. Errors as of Load.
func Open(path string) (*File, Config, error) {
	f := &File{path: path}
	raw, err := read(path)
	if err != nil {
		return nil, Config{}, err
	}
	cfg, err := f.parse(raw)
	if err != nil {
		return nil, Config{}, err
	}
	f.hub, f.good = cfg.Hub, hashOf(raw)
	return f, cfg, nil
}

// Changed reads the file again. It returns true with the new content when that is good and another than the last good one.
// While the file is broken, or cannot be read, it returns the same error at each call; the last good content stays in
// force.
func (f *File) Changed() (Config, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	raw, err := read(f.path)
	if err != nil {
		return Config{}, false, err
	}
	switch hash := hashOf(raw); hash {
	case f.good:
		return Config{}, false, nil
	case f.bad:
		return Config{}, false, f.err
	default:
		cfg, err := f.parse(raw)
		if err == nil && cfg.Hub != f.hub {
			err = fmt.Errorf("read node groups from %s:\nhub: was %q when this server started and is %q now: restart it, or put the old one back", f.path, f.hub, cfg.Hub)
		}
		if err != nil {
			f.bad, f.err = hash, err
			return Config{}, false, err
		}
		f.good = hash
		return cfg, true, nil
	}
}

// Hash identifies the version in force, as the start of its SHA-256.
func (f *File) Hash() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.good
}

func (f *File) parse(raw []byte) (Config, error) {
	cfg, err := Parse(raw)
	if err != nil {
		return Config{}, fmt.Errorf("read node groups from %s:\n%w", f.path, err)
	}
	return cfg, nil
}

func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read node groups: %w", err)
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxSize+1)) // what is longer is refused by Parse
	if err != nil {
		return nil, fmt.Errorf("read node groups: %w", err)
	}
	return raw, nil
}

func hashOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:6])
}
