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

// Config is the content of the config file.
type Config struct {
	// Hub names this installation: a DNS-1123 label of at most 24 characters, the same as the worker's --hub. All
	// objects have a label with this name. For hubs other than the default, it is also part of the workflow ids and
	// of the task queue. Therefore several hubs can share a Temporal namespace. Default fleet.DefaultHub.
	Hub string `json:"hub,omitempty" validate:"hub"`
	// Defaults holds values for the fields that a group does not set. Parse copies these values into the groups and
	// then sets Defaults to nil.
	Defaults *Defaults `json:"defaults,omitempty"`
	// Limits bounds all groups together. The server refuses an IncreaseSize that would exceed a limit.
	Limits grpcserver.Limits `json:"limits,omitzero"`
	// NodeGroups lists the node groups. It must contain at least one.
	NodeGroups []NodeGroup `json:"nodeGroups" validate:"required,min=1,dive"`
}

// Load reads the file and parses it. The error consists of the path of the file and all faults, with one line for
// each fault.
func Load(path string) (Config, error) {
	_, cfg, err := Open(path)
	return cfg, err
}

// Parse reads the YAML document, checks it and fills in defaults. Its error contains all faults (strictyaml.Fault).
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
	errs := make([]error, len(faults)) // all faults, because Faults.Error shortens the list
	for i, fault := range faults {
		errs[i] = fault
	}
	return Config{}, errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	c.Defaults = nil // inherit has copied them into the groups
	if c.Hub == "" {
		c.Hub = fleet.DefaultHub
	}
	for i := range c.NodeGroups {
		c.NodeGroups[i].Budgets = c.NodeGroups[i].Budgets.WithDefaults()
		if c.NodeGroups[i].Nodes == fleet.NodesVirtual { // the default: "" and virtual give equal templates
			c.NodeGroups[i].Nodes = ""
		}
	}
	return c
}
