package config

import (
	"fmt"
	"sync"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/reload"
)

// File is a config file that the server reads again while it runs. It is safe for concurrent use.
type File struct {
	path  string
	files *reload.Files[Config]

	mu      sync.Mutex
	version string // of the config that Open or Changed returned last
}

// Open reads the file for the first time. It returns an error of Load if the file is not valid.
func Open(path string) (*File, Config, error) {
	hub := ""
	parse := func(contents [][]byte) (Config, error) {
		cfg, err := Parse(contents[0])
		if err == nil && hub != "" && cfg.Hub != hub {
			err = fmt.Errorf("hub: was %q when this server started and is %q now: restart it, or restore the old hub",
				hub, cfg.Hub)
		}
		return cfg, err
	}
	files, err := reload.Open(parse, path)
	if err != nil {
		return nil, Config{}, fmt.Errorf("read node groups from %s:\n%w", path, err)
	}
	f := &File{path: path, files: files}
	cfg, version, _ := files.Get()
	hub, f.version = cfg.Hub, version
	return f, cfg, nil
}

// Changed reads the file again. It returns true once for each new version without faults. If the file has faults or
// cannot be read, Changed returns an error, and the last version without faults stays in force.
func (f *File) Changed() (Config, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	cfg, version, err := f.files.Get()
	if err != nil {
		return Config{}, false, fmt.Errorf("read node groups from %s:\n%w", f.path, err)
	}
	if version == f.version {
		return Config{}, false, nil
	}
	f.version = version
	return cfg, true, nil
}

// Hash returns the start of the SHA-256 of the version that is in force.
func (f *File) Hash() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version[:12]
}
