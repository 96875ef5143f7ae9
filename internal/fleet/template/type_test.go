package template_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/template"
)

// A Node of a later Liqo has a label that the template lacks, and that pods avoid. Other labels of the Node alone do not
// count, and neither does the label where the group sets it.
func TestALabelThatPodsAvoid(t *testing.T) {
	spec := fleet.InstanceSpec{ID: "standard"}
	node := template.Of(spec)
	node.Labels[fleet.LabelProvider] = "milan"
	require.Empty(t, template.Differs(spec, node))
	node.Labels[template.LabelType] = "virtual-kubelet"
	require.Equal(t, []string{"label type=virtual-kubelet is not in the template"}, template.Differs(spec, node))
	spec.Labels = map[string]string{template.LabelType: "virtual-kubelet"}
	require.Empty(t, template.Differs(spec, node))
}
