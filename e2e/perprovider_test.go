package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
)

// Pods of this suite select a provider by these labels. labelProvider is the provider's id, which Liqo sets on every
// virtual node. labelRegion is a label that the provider's offer declares.
const (
	labelProvider = "liqo.io/remote-cluster-id"
	labelRegion   = "topology.kubernetes.io/region"
)

// regions are the regions of the offers, in the order of the providers.
var regions = []string{"north", "south"}

// TestFirstNodePerProvider is the suite "first-node" with PER=provider. The server derives a group for each provider
// from the market. Cluster Autoscaler requests nodes in these groups for pods that select a provider.
func TestFirstNodePerProvider(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 18*time.Minute)
	defer cancel()
	per := strings.Replace(groups, "- id: "+group, "- id: "+group+"\n  per: provider", 1)
	labels := "\n  labels: {" + labelRegion + ": "
	labelled := strings.NewReplacer("name: first", "name: first"+labels+regions[0]+"}",
		"name: second", "name: second"+labels+regions[1]+"}").Replace(offers)
	s := newStack(ctx, t, "first-node-per-provider", per, labelled, withMarket)
	offload(ctx, newSteps(t), s.consumer)
	runParts(ctx, t, s, []part{
		{"DerivedGroups", derivedGroups},
		{"DearerByID", func(ctx context.Context, t *testing.T, s *stack) {
			thereAndBackOn(ctx, t, s, 1, map[string]string{labelProvider: s.providers[1].name})
		}},
		{"CheaperByRegion", func(ctx context.Context, t *testing.T, s *stack) {
			thereAndBackOn(ctx, t, s, 0, map[string]string{labelRegion: regions[0]})
		}},
		{"ProvidersAsMade", providersAsMade},
		{"NoSecretKept", noSecretKept},
	})
}

// derivedGroups requires that the market is published and read with the chart's permissions, and that CA receives a
// group for each provider.
func derivedGroups(ctx context.Context, t *testing.T, s *stack) {
	want := make([]string, len(s.providers))
	for i, p := range s.providers {
		want[i] = config.GroupID(group, p.name)
	}
	newSteps(t).until(ctx, "derived groups listed", time.Minute, func(ctx context.Context) error {
		res, err := s.client.NodeGroups(ctx, &protos.NodeGroupsRequest{})
		if err != nil {
			return err
		}
		var got []string
		for _, g := range res.GetNodeGroups() {
			got = append(got, g.GetId())
		}
		if slices.Sort(got); !slices.Equal(want, got) {
			return fmt.Errorf("groups %v, want %v", got, want)
		}
		return nil
	})
}

// thereAndBackOn creates one node for a pod that selects a provider. The node is in that provider's group and equals
// the group's template. CA removes the node after the pod has been deleted.
func thereAndBackOn(ctx context.Context, t *testing.T, s *stack, n int, selector map[string]string) {
	provider, other := s.providers[n], s.providers[1-n]
	id := config.GroupID(group, provider.name)
	r := newRun(t, s)
	require.NoError(t, deploy(ctx, s.consumer, "work", 1, "800m", selector))
	ids := r.scaledOut(ctx, 1)
	require.Contains(t, ids[0], "liqo://"+id+"/")
	grown := s.proxy.Calls(func(c ca.Call) bool { return c.Seq > r.since && c.Method == ca.IncreaseSize })
	require.Len(t, grown, 1)
	require.Equal(t, id, grown[0].Request.(*protos.NodeGroupIncreaseSizeRequest).GetId())
	fmt.Printf("PER %s requested from %s: %v\n", t.Name(), id, ids)
	node, err := s.consumer.node(ctx, ids[0])
	require.NoError(t, err)
	r.until(ctx, "pod running", time.Minute, func(ctx context.Context) error {
		return running(ctx, s.consumer, "work", 1, node.Name)
	})
	r.until(ctx, "pod running on the provider", 30*time.Second, func(ctx context.Context) error {
		return remotePods(ctx, provider, 1)
	})
	require.NoError(t, s.consumer.count(ctx, resourceSlices, 1))
	require.NoError(t, clean(ctx, other))

	t.Run("TemplateIsTheNode", func(t *testing.T) {
		calls := s.proxy.Calls(func(c ca.Call) bool {
			req, ok := c.Request.(*protos.NodeGroupTemplateNodeInfoRequest)
			return ok && req.GetId() == id
		})
		require.NotEmpty(t, calls)
		first, second := templates(t, calls[0])
		require.Equal(t, first, second, "both wire generations carry the same node")
		require.Equal(t, provider.name, first.Labels[labelProvider])
		require.Equal(t, regions[n], first.Labels[labelRegion])
		extra, err := sameAsTemplate(first, node)
		require.NoError(t, err)
		fmt.Printf("PER %s the template is the node; on the node only: %v\n", t.Name(), extra)
		for _, label := range extra {
			require.Truef(t, undeclared(label), "the template lacks %s", label)
		}
	})

	require.NoError(t, undeploy(ctx, s.consumer, "work"))
	r.scaledIn(ctx, ids)
}

// undeclared reports whether a Node may carry a label that its template lacks: a label that Kubernetes or Liqo set
// automatically.
func undeclared(label string) bool {
	return slices.ContainsFunc([]string{"beta.kubernetes.io/", "storage.liqo.io/available="},
		func(prefix string) bool { return strings.HasPrefix(label, prefix) })
}
