package config

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// maxSize bounds the file in bytes; a thousand groups fit.
const maxSize = 1 << 20

// Config is the content of the file.
type Config struct {
	// Hub names this installation: a DNS-1123 label of at most 24 characters, the same as the worker's --hub. It is a label
	// on all objects, and part of the workflow ids and the task queue of all hubs but the default one, so that hubs can share
	// a Temporal namespace. Default fleet.DefaultHub.
	Hub string `json:"hub,omitempty" validate:"hub"`
	// Defaults say what groups have that do not say themselves. Parse works them into the groups and leaves nil.
	Defaults *Defaults `json:"defaults,omitempty"`
	// Limits bound all groups together; the server refuses an IncreaseSize that would pass one.
	Limits fleet.Limits `json:"limits,omitzero"`
	// NodeGroups are the classes of capacity CA may grow, at least one.
	NodeGroups []fleet.GroupSpec `json:"nodeGroups" validate:"required,min=1,dive"`
}

// Defaults are taken by groups that do not say themselves: shape, labels and budgets key by key, the others as a whole.
type Defaults struct {
	Min        int                   `json:"min,omitempty"`
	Max        int                   `json:"max,omitempty"`
	Shape      corev1.ResourceList   `json:"shape,omitempty"`
	Labels     map[string]string     `json:"labels,omitempty"`
	Taints     []corev1.Taint        `json:"taints,omitempty"`
	GroupTaint corev1.TaintEffect    `json:"groupTaint,omitempty"`
	Selector   *metav1.LabelSelector `json:"selector,omitempty"`
	Budgets    fleet.Budgets         `json:"budgets,omitempty"`
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
	_, cfg, err := Open(path)
	return cfg, err
}

// Parse reads the YAML document, checks it and fills in defaults. It never panics, whatever the input.
func Parse(raw []byte) (Config, error) {
	tree, complaints := parseYAML(raw)
	var cfg Config
	var from origins
	if !fatal(complaints) {
		from = inherit(tree)
		complaints = append(complaints, decode(tree, &cfg)...)
	}
	if !fatal(complaints) {
		complaints = append(complaints, negativeBudgets(cfg)...) // before the defaults, which take them for absent
		cfg = cfg.withDefaults()
		complaints = append(complaints, without(validate(cfg), complaints)...)
		complaints = from.blame(complaints)
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
	c.Defaults = nil // they are in the groups
	if c.Hub == "" {
		c.Hub = fleet.DefaultHub
	}
	for i := range c.NodeGroups {
		c.NodeGroups[i].Budgets = c.NodeGroups[i].Budgets.WithDefaults()
	}
	return c
}
