package derive

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/template"
)

const arch = "kubernetes.io/arch"

// TestArchitectureFollowsTheOffer derives groups for providers. A group has the architecture of its provider's offer. A
// base that names an architecture has only groups of this architecture. An offer with an unknown architecture makes no
// group.
func TestArchitectureFollowsTheOffer(t *testing.T) {
	arm, strange := offer("turin", "south", 1), offer("rome", "south", 1)
	arm.Labels[arch], strange.Labels[arch] = "arm64", "vax"
	w := newWorld(offer("milan", "north", 2), arm, strange)
	archOf := func(b config.NodeGroup) map[string]string {
		found := map[string]string{}
		for _, spec := range w.groups().Expand([]config.NodeGroup{b}) {
			found[spec.ID] = template.Of(spec.InstanceSpec).Labels[arch]
		}
		return found
	}
	require.Equal(t, map[string]string{"l-milan": fleet.DefaultArchitecture, "l-turin": "arm64"},
		archOf(base("l", config.PerProvider)))
	own := base("l", config.PerProvider)
	own.Labels = map[string]string{arch: "arm64"}
	require.Equal(t, map[string]string{"l-milan": "arm64", "l-turin": "arm64"}, archOf(own),
		"the architecture of milan is not known")
	require.Equal(t, map[string]string{"r-north": fleet.DefaultArchitecture},
		archOf(base("r", "label:topology.kubernetes.io/region")))
}
