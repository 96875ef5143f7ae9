package config

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Per says whether the offers make groups of a node group, and which.
type Per string

// The forms of Per.
const (
	PerAny      Per = "any"
	PerProvider Per = "provider"
	perLabel        = "label:" // and the key of an offer's label
)

// Derives reports whether the offers make groups, for which their own node group is the base.
func (p Per) Derives() bool { return p != "" && p != PerAny }

// Label is the key of the offers' label whose values make groups; ok is false when no label does.
func (p Per) Label() (key string, ok bool) { return strings.CutPrefix(string(p), perLabel) }

// valid reports whether groups can be made so. A label that nodes do not get from their offer makes no groups.
func (p Per) valid() bool {
	key, label := p.Label()
	return p == PerAny || p == PerProvider || label && len(NodeLabels(map[string]string{key: ""})) > 0
}

// NodeLabels are those of an offer's labels that its nodes carry in a derived group: not what Kubernetes, Liqo or we
// set.
func NodeLabels(offered map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range offered {
		prefix, _, prefixed := strings.Cut(key, "/")
		reserved := prefixed && (prefix == "liqo.io" || prefix == "kubernetes.io" || prefix == "node.kubernetes.io" ||
			prefix == "liqo-autoscaler.io" || strings.HasSuffix(prefix, ".liqo-autoscaler.io")) ||
			key == "type" && value == "virtual-kubelet"
		if !reserved && len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0 {
			out[key] = value
		}
	}
	return out
}

// GroupID names the group of a value, of a size, or of a size and a value: <base>-<size>-<value>, or what fits of it
// and five characters of a hash. It is a pure function, so that every server and every restart finds the same groups.
func GroupID(parts ...string) string {
	plain := strings.Join(parts, "-")
	if fleet.ValidGroupID(plain) {
		return plain
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	hash := "-" + hex.EncodeToString(sum[:])[:5]
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(plain))
	return strings.TrimRight(clean[:min(len(clean), fleet.MaxGroupID-len(hash))], "-") + hash
}
