package derive

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// spec returns the spec of the derived group: the base's spec, restricted to the group's value.
func (d *derived) spec(base config.Base) fleet.GroupSpec {
	out := base.GroupSpec
	out.ID = d.id
	out.Labels = maps.Clone(d.labels)
	for key, value := range base.Labels {
		if _, theirs := out.Labels[key]; !theirs { // the offer has precedence: Liqo copies its labels to the Node
			out.Labels[key] = value
		}
	}
	key, byLabel := base.Per.Label()
	if !byLabel {
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
	selector.MatchLabels[key] = d.value
	out.Selector = &selector
	return out
}
