package config

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// DefaultHub is the hub's name when the file does not say.
const DefaultHub = "default"

// maxSize bounds the file in bytes; a thousand groups fit.
const maxSize = 1 << 20

// Config is the content of the file.
type Config struct {
	// Hub names this consumer cluster: a DNS-1123 label of at most 24 characters. It prefixes workflow ids and labels
	// what we make, so two hubs may share a Temporal namespace or a provider. Default DefaultHub.
	Hub string `json:"hub,omitempty" validate:"hub"`
	// NodeGroups are the classes of capacity CA may grow, at least one.
	NodeGroups []fleet.GroupSpec `json:"nodeGroups" validate:"required,min=1,dive"`
}

// FieldError is one complaint about the file. Parse returns them joined (errors.Join), in the order of their paths.
type FieldError struct {
	// Path is the field's YAML path, such as nodeGroups[1].shape.cpu; empty for the file as a whole.
	Path string
	// Message says what is wrong and what to do.
	Message string

	follows     string // the other field it is measured against, if any
	recoverable bool   // about the file as a whole, yet the rest of it can still be looked at
}

func (e *FieldError) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// Load reads the file and parses it. A broken file yields all its complaints at once, one a line, after the path.
func Load(path string) (Config, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read node groups: %w", err)
	}
	cfg, err := Parse(raw)
	if err != nil {
		return Config{}, fmt.Errorf("read node groups from %s:\n%w", path, err)
	}
	return cfg, nil
}

// Parse reads the YAML document, checks it and fills in defaults. It never panics, whatever the input.
func Parse(raw []byte) (Config, error) {
	tree, complaints := parseYAML(raw)
	var cfg Config
	if !fatal(complaints) {
		complaints = append(complaints, decode(tree, &cfg)...)
	}
	if !fatal(complaints) {
		complaints = append(complaints, negativeBudgets(cfg)...) // before the defaults, which take them for absent
		cfg = cfg.withDefaults()
		complaints = append(complaints, without(validate(cfg), complaints)...)
	}
	if len(complaints) == 0 {
		return cfg, nil
	}
	slices.SortStableFunc(complaints, func(a, b *FieldError) int { return comparePaths(a.Path, b.Path) })
	errs := make([]error, len(complaints))
	for i, c := range complaints {
		errs[i] = c
	}
	return Config{}, errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.Hub == "" {
		c.Hub = DefaultHub
	}
	for i := range c.NodeGroups {
		c.NodeGroups[i].Budgets = c.NodeGroups[i].Budgets.WithDefaults()
	}
	return c
}
