package config

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Per defines whether and how a node group's entry derives groups from the offers.
type Per string

// These constants are the forms of Per.
const (
	PerAny      Per = "any"
	PerProvider Per = "provider"
	perLabel        = "label:" // prefix of an offer's label key
)

// Derives reports whether an entry with this Per derives groups from the offers.
func (p Per) Derives() bool { return p != "" && p != PerAny }

// Label returns the key of the offers' label whose values define the groups. The result `ok` is false for the other
// forms of Per.
func (p Per) Label() (key string, ok bool) { return strings.CutPrefix(string(p), perLabel) }

// valid reports whether Per has a valid form. The form label:<key> is valid only if nodes receive this label from
// their offer.
func (p Per) valid() bool {
	key, label := p.Label()
	return p == PerAny || p == PerProvider || label && len(NodeLabels(map[string]string{key: ""})) > 0
}

// NodeLabels returns the labels that the nodes of a derived group receive from their offer. It omits labels that
// Kubernetes, Liqo or liqo-autoscaler sets.
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

// GroupID joins the parts of a group's id with dashes. The id has the form <base>-<size>-<value>, where size or value
// may be absent. If the result is not a valid id, GroupID replaces invalid characters with dashes, cuts the id and
// appends five characters of a hash. GroupID is pure. Therefore every server computes the same ids, also after a
// restart.
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
