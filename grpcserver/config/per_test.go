package config

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func TestDerivedIDsAreValidAndShort(t *testing.T) {
	require.Equal(t, "l-milan", GroupID("l", "milan"))
	require.Equal(t, "l-eu-west-1-a-long-1f6f1", GroupID("l", "eu-west-1-a-long-name-of-a-region"))
	for _, value := range []string{"North", "north/2", "-", "ü", "x.y", "a-very-long-name-of-a-provider-cluster"} {
		id := GroupID("large", value)
		require.True(t, fleet.ValidGroupID(id), "%s: %s", value, id)
		require.NotEqual(t, id, GroupID("large", value+"x"))
	}
}

func TestPerIsValidated(t *testing.T) {
	for per, valid := range map[string]bool{
		"any": true, "provider": true, "label:topology.kubernetes.io/region": true, "label:": false, "label:a b": false,
		"region": false, "": false, "label:region": true,
		// Nodes do not get these labels from their offer. If the field per accepted such a label, no group would be
		// derived, and no error would be reported.
		"label:kubernetes.io/arch": false, "label:node.kubernetes.io/instance-type": false, "label:liqo.io/site": false,
		"label:liqo-autoscaler.io/zone": false,
	} {
		require.Equal(t, valid, Per(per).valid(), per)
	}
}

func TestNodeLabelsOfAnOffer(t *testing.T) {
	require.Equal(t, map[string]string{"topology.liqo.io/region": "south", "zone": "a"}, NodeLabels(map[string]string{
		"topology.liqo.io/region": "south", "zone": "a", "kubernetes.io/hostname": "x", "liqo.io/type": "virtual-node",
		"liqo-autoscaler.io/group": "theirs", "type": "virtual-kubelet", "bad key": "x", "bad-value": "a b",
	}))
}

// The id of a derived group depends only on the base group's id, the size and the value, even when it is shortened.
func TestIDOfASizeIsStable(t *testing.T) {
	require.Equal(t, "burst-small-milan", GroupID("burst", "small", "milan"))
	long := []string{GroupID("burst", "memory", "eu-west-1-a-long-name"), GroupID("burst", "memory",
		"eu-west-1-a-long-name-2"),
		GroupID("burst", "memory-eu", "west-1-a-long-name"), GroupID("burst", "memory-of-a-large-machine")}
	for i, id := range long {
		require.True(t, fleet.ValidGroupID(id), id)
		require.Equal(t, i, slices.Index(long, id), "%v", long)
	}
	require.Equal(t, "burst-memory-eu-we-", long[0][:19])
}
