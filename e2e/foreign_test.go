package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// TestForeignPeering is the suite "foreign". We share a provider with other users, and none of their objects is changed
// (invariants I9 and I11). In the last two parts, our peering stays as long as another peering needs it.
func TestForeignPeering(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 28*time.Minute)
	defer cancel()
	s := newStack(ctx, t, "foreign", groups, offers)
	offload(ctx, newSteps(t), s.consumer)
	runParts(ctx, t, s, []part{
		{"PeeredByHand", peeredByHand},
		{"PeeredTheOtherWay", peeredTheOtherWay},
		{"AnotherTeamsSlice", anotherTeamsSlice},
	})
}

// peeredByHand uses a peering that `liqoctl peer` has created, and leaves the peering unchanged.
func peeredByHand(ctx context.Context, t *testing.T, s *stack) {
	r := newRun(t, s)
	first := s.providers[0]
	require.NoError(t, s.liqoctl(ctx, s.consumer, peering(s, first)...))
	r.done("liqoctl peer")
	theirs := map[*cluster][]schema.GroupVersionResource{s.consumer: {identities}, first: {tenants}}
	before, err := s.theirs(ctx, theirs)
	require.NoError(t, err)
	r.empty = func(ctx context.Context) error { return noneOfOurs(ctx, append(s.providers, s.consumer)...) }
	r.thereAndBackOn(ctx, first)
	require.NoError(t, same(ctx, before, theirs))
	require.NoError(t, s.liqoctl(ctx, s.consumer, append(unpeering(s, first), "--delete-namespaces")...))
	r.until(ctx, "unpeered by hand", time.Minute,
		func(ctx context.Context) error { return clean(ctx, append(s.providers, s.consumer)...) })
	r.until(ctx, "our namespace created again", time.Minute, func(ctx context.Context) error {
		return s.grantAnew(ctx, first)
	})
}

// peeredTheOtherWay makes the provider use our cluster as well. The provider's own peering stays unchanged. Our
// peering shares namespaces with it, so our peering also stays until the provider's peering is gone.
func peeredTheOtherWay(ctx context.Context, t *testing.T, s *stack) {
	r := newRun(t, s)
	first := s.providers[0]
	require.NoError(t, s.liqoctl(ctx, first, peering(s, s.consumer)...))
	r.done("liqoctl peer, the other way")
	theirs := map[*cluster][]schema.GroupVersionResource{first: {identities}, s.consumer: {tenants}}
	before, err := s.theirs(ctx, theirs)
	require.NoError(t, err)
	r.empty = func(ctx context.Context) error {
		return errors.Join(s.consumer.count(ctx, resourceSlices, 0), s.consumer.count(ctx, virtualNodes, 0),
			first.count(ctx, resourceSlices, 0))
	}
	r.thereAndBackOn(ctx, first)
	r.until(ctx, "unpeering has given up", time.Minute, func(ctx context.Context) error { return r.lingers(ctx, first) })
	require.NoError(t, same(ctx, before, theirs))
	require.NoError(t, s.liqoctl(ctx, first, unpeering(s, s.consumer)...))
	r.until(ctx, "their peering is gone", time.Minute, func(ctx context.Context) error {
		return errors.Join(first.count(ctx, identities, 0), s.consumer.count(ctx, tenants, 0))
	})
	require.NoError(t, first.count(ctx, tenants, 1), "ours is left for the next part")
}

// anotherTeamsSlice creates another team's slice on a provider with our peering. Our last scale-in changes neither
// the slice nor its node nor the peering. When the slice is gone, the next try, minutes later, removes the peering
// too. We never remove the network that a person made in the part before.
func anotherTeamsSlice(ctx context.Context, t *testing.T, s *stack) {
	r := newRun(t, s)
	first := s.providers[0]
	parts := []schema.GroupVersionResource{configurations, gatewayServers, gatewayClients, publicKeys}
	network := map[*cluster][]schema.GroupVersionResource{s.consumer: parts, first: parts}
	made, err := uids(ctx, network)
	require.NoError(t, err)
	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
	ids := r.scaledOut(ctx, 1)
	node, err := s.consumer.node(ctx, ids[0])
	require.NoError(t, err)
	r.until(ctx, "pod running", time.Minute,
		func(ctx context.Context) error { return running(ctx, s.consumer, "work", 1, node.Name) })
	require.NoError(t, s.liqoctl(ctx, s.consumer, "create", "resourceslice", "team", "--remote-cluster-id", first.name,
		"--cpu", "1", "--memory", "1Gi", "--pods", "10"))
	r.until(ctx, "their node is there", time.Minute,
		func(ctx context.Context) error { return nodeReady(ctx, s.consumer, "team") })
	theirs := map[*cluster][]schema.GroupVersionResource{s.consumer: {resourceSlices, virtualNodes, identities},
		first: {resourceSlices, tenants}}

	require.NoError(t, undeploy(ctx, s.consumer, "work"))
	r.empty = func(ctx context.Context) error {
		return errors.Join(s.consumer.count(ctx, resourceSlices, 1), s.consumer.count(ctx, virtualNodes, 1),
			first.count(ctx, resourceSlices, 1))
	}
	r.scaledIn(ctx, ids)
	before, err := uids(ctx, theirs)
	require.NoError(t, err)
	r.until(ctx, "unpeering has given up", time.Minute, func(ctx context.Context) error { return r.lingers(ctx, first) })
	r.during(ctx, "theirs stays", 10*time.Second, func(ctx context.Context) error {
		return errors.Join(same(ctx, before, theirs), nodeReady(ctx, s.consumer, "team"))
	})

	slices, err := s.consumer.list(ctx, resourceSlices)
	require.NoError(t, err)
	require.Equal(t, "team", slices[0].GetName())
	require.NoError(t, s.consumer.liqo.Resource(resourceSlices).Namespace(slices[0].GetNamespace()).Delete(ctx, "team",
		metav1.DeleteOptions{}))
	all := append(s.providers, s.consumer)
	r.until(ctx, "peering removed once free", 7*time.Minute, func(ctx context.Context) error {
		return errors.Join(noneOfOurs(ctx, all...), first.count(ctx, tenants, 0), s.consumer.count(ctx, identities, 0))
	})
	if s.gateways {
		require.NoError(t, same(ctx, made, network), "which they have made, stays until they take it away")
		require.NoError(t, s.liqoctl(ctx, first, "network", "reset", "--remote-kubeconfig", s.lab.Kubeconfig(lab.Consumer)))
	}
	r.until(ctx, "nothing left", time.Minute, func(ctx context.Context) error { return clean(ctx, all...) })
}

// thereAndBackOn makes CA request one node, which is created on the given provider, and then release it.
func (r *run) thereAndBackOn(ctx context.Context, provider *cluster) {
	r.t.Helper()
	require.NoError(r.t, deploy(ctx, r.s.consumer, "work", 2, "800m"))
	ids := r.scaledOut(ctx, 1)
	node, err := r.s.consumer.node(ctx, ids[0])
	require.NoError(r.t, err)
	require.Equal(r.t, provider.name, node.Labels["liqo.io/remote-cluster-id"])
	r.until(ctx, "pods running", time.Minute,
		func(ctx context.Context) error { return running(ctx, r.s.consumer, "work", 2) })
	require.NoError(r.t, undeploy(ctx, r.s.consumer, "work"))
	r.scaledIn(ctx, ids)
}

// lingers requires that the peering with a provider is kept because another user needs it.
func (r *run) lingers(ctx context.Context, provider *cluster) error {
	var state fleet.ProviderSnapshot
	if err := r.s.published(ctx, "provider/"+provider.name, &state); err != nil {
		return err
	}
	if state.Phase != fleet.Lingering || time.Until(state.KeepUntil) < time.Second {
		return fmt.Errorf("the peering with %s is %s, kept until %s", provider.name, state.Phase, state.KeepUntil)
	}
	return nil
}

func peering(s *stack, provider *cluster) []string {
	args := []string{"peer", "--remote-kubeconfig", s.lab.Kubeconfig(provider.name), "--create-resource-slice=false",
		"--timeout", "2m"}
	if !s.gateways {
		args = append(args, "--networking-disabled")
	}
	return args
}

func unpeering(s *stack, provider *cluster) []string {
	return []string{"unpeer", "--remote-kubeconfig", s.lab.Kubeconfig(provider.name), "--timeout", "2m"}
}

// liqoctl runs Liqo's command line in a cluster, as users do.
func (s *stack) liqoctl(ctx context.Context, in *cluster, args ...string) error {
	args = append(args, "--kubeconfig", s.lab.Kubeconfig(in.name), "--skip-confirm")
	out, err := exec.CommandContext(ctx, filepath.Join(s.lab.Bin, "liqo", "liqoctl"), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("liqoctl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// theirs returns the two objects of a peering that a person has made. With gateways it also returns the six objects
// of the peering's network, and adds the kinds of these objects to the parameter kinds.
func (s *stack) theirs(ctx context.Context, kinds map[*cluster][]schema.GroupVersionResource) (map[string]types.UID,
	error) {
	want := 2
	if s.gateways {
		want += 6 // each cluster has a Configuration and a key; one cluster has a server, and the other a client
		for c := range kinds {
			kinds[c] = append(kinds[c], configurations, publicKeys, gatewayServers, gatewayClients)
		}
	}
	before, err := uids(ctx, kinds)
	if err == nil && len(before) != want {
		err = fmt.Errorf("by hand were made %v, want %d", before, want)
	}
	return before, err
}

// uids returns the UIDs of objects by cluster, kind and name.
func uids(ctx context.Context, kinds map[*cluster][]schema.GroupVersionResource) (map[string]types.UID, error) {
	out := map[string]types.UID{}
	for c, resources := range kinds {
		for _, r := range resources {
			items, err := c.list(ctx, r)
			if err != nil {
				return nil, err
			}
			for _, i := range items {
				out[c.name+" "+r.Resource+" "+i.GetNamespace()+"/"+i.GetName()] = i.GetUID()
			}
		}
	}
	return out, nil
}

// same requires exactly the same objects as before. None of these objects may have been created again.
func same(ctx context.Context, before map[string]types.UID, kinds map[*cluster][]schema.GroupVersionResource) error {
	now, err := uids(ctx, kinds)
	if err == nil && !maps.Equal(before, now) {
		err = fmt.Errorf("there were %v, now there are %v", before, now)
	}
	return err
}

// noneOfOurs requires that no object has our labels. Foreign objects may exist.
func noneOfOurs(ctx context.Context, clusters ...*cluster) error {
	kinds := []schema.GroupVersionResource{resourceSlices, virtualNodes, tenants, identities, configurations,
		gatewayServers, gatewayClients, publicKeys,
		{Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "namespaces"}, {Version: "v1", Resource: "nodes"}}
	var found []error
	for _, c := range clusters {
		for _, r := range kinds {
			ours := backend.LabelManagedBy + "=" + backend.ManagedBy
			if r.Resource == "nodes" {
				ours = backend.LabelGroup
			}
			l, err := c.liqo.Resource(r).List(ctx, metav1.ListOptions{LabelSelector: ours})
			if err != nil {
				return fmt.Errorf("list %s of %s: %w", r.Resource, c.name, err)
			}
			for _, i := range l.Items {
				found = append(found, fmt.Errorf("%s: %s %s/%s", c.name, i.GetKind(), i.GetNamespace(), i.GetName()))
			}
		}
	}
	return errors.Join(found...)
}

func nodeReady(ctx context.Context, c *cluster, name string) error {
	n, err := c.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err == nil && !isReady(n) {
		err = fmt.Errorf("node %s is not Ready", name)
	}
	return err
}
