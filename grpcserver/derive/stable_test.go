package derive

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// gpuSizes returns sizes with three weighted resources. The sum of their weights depends on the order of the
// addition.
func gpuSizes() config.NodeGroup {
	size := func(name, cpu, memory, gpus string) config.Size {
		s := config.Size{Name: name, Shape: shape(cpu, memory)}
		s.Shape["pods"], s.Shape[gpu] = resource.MustParse("110"), resource.MustParse(gpus)
		return s
	}
	return config.NodeGroup{ID: "ml", Defaults: config.Defaults{Max: 5}, Sizes: []config.Size{size("one", "8", "32Gi",
		"1"),
		size("two", "24", "128Gi", "2"), size("four", "48", "192Gi", "4"), size("eight", "96", "384Gi", "8")}}
}

// The same sizes always have the same price factors and hashes. A different hash would be a new spec, and the group
// would be configured again.
func TestSizesHaveStableHashes(t *testing.T) {
	first := gpuSizes().Bases()
	require.Equal(t, 1.0, first[0].PriceFactor)
	for range testkit.Cases(t) {
		for n, s := range gpuSizes().Bases() {
			require.Equal(t, first[n].PriceFactor, s.PriceFactor, s.ID)
			require.Equal(t, first[n].Hash(), s.Hash(), s.ID)
		}
	}
}

func TestUnchangedConfigIsNotAppliedAgain(t *testing.T) {
	_, reload := (&Groups{}).Follow(config.Config{NodeGroups: []config.NodeGroup{gpuSizes()}}, &file{})
	for range 100 {
		_, changed, err := reload()
		require.NoError(t, err)
		require.False(t, changed)
	}
}

// A size with huge pages costs in proportion to its shape: a GiB of huge pages costs as much as a GiB of memory.
func TestPriceFactorOfASizeWithHugePages(t *testing.T) {
	huge := shape("4", "14Gi")
	huge["hugepages-2Mi"] = resource.MustParse("2Gi")
	sizes := config.NodeGroup{ID: "db", Sizes: []config.Size{{Name: "plain", Shape: shape("4", "16Gi")},
		{Name: "huge", Shape: huge}}}.Bases()
	require.InDelta(t, 1, sizes[1].PriceFactor, 1e-9)
	require.InDelta(t, 0.184, grpcserver.Weight(huge), 1e-9)
}
