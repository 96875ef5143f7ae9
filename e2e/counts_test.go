package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// counted adds a check to the end of each part: no cluster may have an object of ours, of any kind that the cluster
// serves.
func counted(parts []part) []part {
	out := slices.Clone(parts)
	for i, p := range parts {
		out[i].run = func(ctx context.Context, t *testing.T, s *stack) {
			p.run(ctx, t, s)
			for _, c := range append([]*cluster{s.consumer}, s.providers...) {
				kinds, byKind, err := ours(ctx, c)
				require.NoError(t, err)
				said := make([]string, 0, len(byKind))
				for _, kind := range slices.Sorted(maps.Keys(byKind)) {
					said = append(said, fmt.Sprintf(" %s %v", kind, byKind[kind]))
				}
				fmt.Printf("COUNT %s/%s: %d objects of ours of %d kinds%s\n", t.Name(), c.name, total(byKind), kinds,
					strings.Join(said, ","))
				assert.Empty(t, byKind, "left on %s", c.name)
			}
		}
	}
	return out
}

// ours returns the names of the objects with our label, by kind, and the number of kinds that it has searched.
func ours(ctx context.Context, c *cluster) (kinds int, found map[string][]string, err error) {
	lists, err := c.kube.Discovery().ServerPreferredResources()
	if err != nil {
		return 0, nil, fmt.Errorf("kinds of %s: %w", c.name, err)
	}
	found = map[string][]string{}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return 0, nil, err
		}
		for _, r := range list.APIResources {
			selector := backend.LabelManagedBy + "=" + backend.ManagedBy
			if r.Name == "nodes" {
				selector = backend.LabelGroup
			}
			l, err := c.liqo.Resource(version.WithResource(r.Name)).List(ctx, metav1.ListOptions{LabelSelector: selector})
			switch {
			case apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err):
				continue
			case err != nil:
				return 0, nil, fmt.Errorf("list %s of %s: %w", r.Name, c.name, err)
			}
			kinds++
			for _, i := range l.Items {
				found[r.Kind] = append(found[r.Kind], strings.TrimPrefix(i.GetNamespace()+"/"+i.GetName(), "/"))
			}
		}
	}
	return kinds, found, nil
}

func total(byKind map[string][]string) (n int) {
	for _, names := range byKind {
		n += len(names)
	}
	return n
}
