package derive

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// The forms of GroupSpec.Per.
const (
	PerAny      = "any"
	PerProvider = "provider"
	PerLabel    = "label:" // and the key of an offer's label
)

// ValidPer reports whether a group can be derived so. A label that nodes do not get from their offer makes no groups.
func ValidPer(per string) bool {
	key, label := strings.CutPrefix(per, PerLabel)
	return per == PerAny || per == PerProvider || label && len(NodeLabels(map[string]string{key: ""})) > 0
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

// ID names the group of a value, of a size, or of a size and a value: <base>-<size>-<value>, or what fits of it and
// five characters of a hash. It is a pure function, so that every server and every restart finds the same groups.
func ID(parts ...string) string {
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

// spec is the derived group's: that of the base, for its value alone.
func (d *derived) spec(base fleet.GroupSpec) fleet.GroupSpec {
	out := base
	out.ID, out.Per, out.Min, out.MinPerGroup = d.id, "", base.MinPerGroup, 0
	out.Labels = maps.Clone(d.labels)
	for key, value := range base.Labels {
		if _, theirs := out.Labels[key]; !theirs { // Liqo puts the provider's labels on the Node
			out.Labels[key] = value
		}
	}
	if base.Per == PerProvider {
		out.Provider = d.value
		return out
	}
	selector := metav1.LabelSelector{}
	if base.Selector != nil {
		selector = *base.Selector.DeepCopy()
	}
	if selector.MatchLabels == nil {
		selector.MatchLabels = map[string]string{}
	}
	selector.MatchLabels[strings.TrimPrefix(base.Per, PerLabel)] = d.value
	out.Selector = &selector
	return out
}
