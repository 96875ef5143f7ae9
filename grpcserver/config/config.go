package config

import (
	"errors"
	"fmt"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// maxSize bounds the size of the file in bytes. A thousand groups fit in it.
const maxSize = 1 << 20

// Config is the content of the file.
type Config struct {
	// Hub names this installation: a DNS-1123 label of at most 24 characters, the same as the worker's --hub. It is a
	// label on all objects, and part of the workflow ids and the task queue of all hubs except the default one, so that
	// hubs can share a Temporal namespace. Default fleet.DefaultHub.
	Hub string `json:"hub,omitempty" validate:"hub"`
	// Defaults holds the values for groups that do not set them. Parse copies them into the groups and leaves nil.
	Defaults *Defaults `json:"defaults,omitempty"`
	// Limits bounds all groups together. The server refuses an IncreaseSize that would exceed a limit.
	Limits grpcserver.Limits `json:"limits,omitzero"`
	// NodeGroups lists the classes of capacity that CA may grow, at least one.
	NodeGroups []NodeGroup `json:"nodeGroups" validate:"required,min=1,dive"`
}

// Load reads the file and parses it. The error lists all faults of the file, one a line, after the path.
func Load(path string) (Config, error) {
	_, cfg, err := Open(path)
	return cfg, err
}

// Parse reads the YAML document, checks it and fills in defaults. Its error joins all faults (strictyaml.Fault).
func Parse(raw []byte) (Config, error) {
	if len(raw) > maxSize {
		return Config{}, fmt.Errorf("the file has %d bytes, more than %d: shorten it", len(raw), maxSize)
	}
	tree, faults, err := strictyaml.Read(raw)
	if err == nil {
		err = strictyaml.OtherFile(tree, "nodeGroups")
	}
	if err != nil {
		return Config{}, err
	}
	var cfg Config
	from := inherit(tree)
	faults = faults.And(strictyaml.Decode(tree, &cfg))
	cfg = cfg.withDefaults()
	faults = faults.And(rules.Check(cfg))
	faults = from.relocate(faults.And(checkConfig(cfg))).Locate(raw)
	if len(faults) == 0 {
		return cfg, nil
	}
	errs := make([]error, len(faults)) // every fault: Faults.Error cuts the list
	for i, fault := range faults {
		errs[i] = fault
	}
	return Config{}, errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	c.Defaults = nil // they are in the groups
	if c.Hub == "" {
		c.Hub = fleet.DefaultHub
	}
	for i := range c.NodeGroups {
		c.NodeGroups[i].Budgets = c.NodeGroups[i].Budgets.WithDefaults()
		if c.NodeGroups[i].Nodes == fleet.NodesVirtual { // the default, so an explicit value changes no template
			c.NodeGroups[i].Nodes = ""
		}
	}
	return c
}
