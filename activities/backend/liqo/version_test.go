package liqo

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/liqoversion"
)

func manager(version string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: named("liqo", liqoversion.Deployment)}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Image: "ghcr.io/liqotech/liqo-controller-manager:v" + version}}
	return d
}

// The Liqo versions of the two clusters are incompatible. Establish makes no new peering, unless AnyLiqo is set; an
// existing peering continues. For versions that were not tested together, Establish only reports a warning.
func TestUnfitLiqoVersionsPreventNewPeerings(t *testing.T) {
	t.Parallel()
	const goesOn = backend.StageNonce
	for name, c := range map[string]struct {
		here, there string
		anyLiqo     bool
		ours        bool
		stage       backend.Stage
		said        string
	}{
		"together":            {here: "1.2.0", there: "1.2.1", stage: goesOn},
		"different minor":     {here: "1.2.0", there: "1.1.2", stage: backend.StageAPIServer, said: "different minor"},
		"any Liqo is allowed": {here: "1.2.0", there: "1.1.2", anyLiqo: true, stage: goesOn, said: "different minor"},
		"not known":           {here: "1.2.0", stage: goesOn, said: "unknown for one cluster or both"},
		"peering that exists": {here: "1.2.0", there: "1.1.2", ours: true, stage: goesOn},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				secret, _ := keys(t)
				var here, there []client.Object
				if c.ours {
					here, there = ourPeering()
				}
				if c.there != "" {
					there = append(there, manager(c.there))
				}
				clusters := newClusters(t, append(here, secret, manager(c.here)), there)
				clusters.config.AnyLiqo = c.anyLiqo
				var said []string
				err := clusters.Establish(soon(t), provider(), func(_ backend.Stage, message string) {
					said = append(said, message)
				})
				var stage *backend.StageError
				require.ErrorAs(t, err, &stage)
				require.Equal(t, c.stage, stage.Stage, "%v", err)
				require.Equal(t, c.stage != goesOn, errors.Is(err, backend.ErrInvalid), "%v", err)
				all := strings.Join(append(said, err.Error()), "\n")
				require.Contains(t, all, c.said)
				require.Equal(t, c.said != "", strings.Contains(all, "Liqo "), all)
			})
		})
	}
}

// Up to Liqo 1.1, a consumer can have only one slice on a provider. If the provider already has a slice of this
// cluster, Join fails, even if the slice has another owner.
func TestProviderHasOneSliceUpToLiqo11(t *testing.T) {
	t.Parallel()
	both := peered(accepted("2"), sliceIdentity(), manager("1.1.2"))
	theirs := accepted("1")
	theirs.Name, theirs.Labels = "theirs", with(outgoing(peer), of(peer))
	for version, want := range map[string]error{"1.1.2": backend.ErrFull, "1.1.1": nil, "1.2.0": nil} {
		synctest.Test(t, func(t *testing.T) {
			c := newClusters(t, peered(theirs.DeepCopy(), manager(version)), nil)
			c.config.AnyLiqo = version == "1.1.1"
			_, err := c.Join(soon(t), spec(), nil)
			require.Equal(t, want != nil, !exists(t, c.local, accepted("2")), "%v", err)
			if want != nil {
				require.ErrorIs(t, err, want)
				require.ErrorContains(t, err, "has ResourceSlice "+localNS+"/theirs already")
			}
		})
	}

	// Two Joins make their slices concurrently. Each Join sees the other slice before it makes a virtual node.
	synctest.Test(t, func(t *testing.T) {
		c := newClusters(t, append(both, theirs), nil)
		s := spec()
		s.Labels = nil
		_, err := c.Join(soon(t), s, nil)
		require.ErrorIs(t, err, backend.ErrFull)
		require.False(t, exists(t, c.local, running()))
	})
}
