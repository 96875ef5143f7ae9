package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/player"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

const ratioGroups = `
hub: lab
nodeGroups:
- id: cold
  max: 1
  shape: {cpu: "2", memory: 4Gi, pods: "20", ephemeral-storage: 10Gi}
  selector: {matchLabels: {lives: on-provider1}}
- id: warm
  max: 2
  shape: {cpu: "2", memory: 4Gi, pods: "20", ephemeral-storage: 10Gi}
  selector: {matchLabels: {lives: on-provider2}}
`

// aheadGroup is added to the config after the other measurements.
const aheadGroup = `
- id: ahead
  max: 1
  standby: 1
  shape: {cpu: "2", memory: 4Gi, pods: "20", ephemeral-storage: 10Gi}
  selector: {matchLabels: {lives: on-provider1}}
`

// ratioRounds is the number of runs of each measurement.
const ratioRounds = 5

// TestRatio prints the duration of a scale-out, from IncreaseSize to a Node with the instance's id that accepts pods.
// For comparison, it prints how long manual steps on the same clusters take until such a Node exists. For the first
// node on a provider, the manual step is `liqoctl peer`, which makes network, peering and slice. For a further node,
// or when a standby has peered before, the manual step is to create a ResourceSlice. No process waits for a disk:
// neither the lab's etcds nor Temporal's database sync their files.
func TestRatio(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 28*time.Minute)
	defer cancel()
	s := newStack(ctx, t, "ratio", ratioGroups, crashOffers, withoutCA, withRightsTaken) // liqoctl removes our namespace
	b := &ratio{t: t, s: s, took: map[string][]time.Duration{}}
	cold, warm := player.Of(t, "cold", s.client), player.Of(t, "warm", s.client)
	warm.Wanted = 1
	b.scaledOut(ctx, warm)
	for range ratioRounds {
		b.took["liqoctl"] = append(b.took["liqoctl"], b.liqoctlPeer(ctx))
		cold.Wanted = 1
		b.took["cold"] = append(b.took["cold"], b.scaledOut(ctx, cold))
		b.scaledIn(ctx, cold, 0)
		b.until(ctx, func(ctx context.Context) error { return errors.Join(clean(ctx, s.providers[0]), b.noNamespace(ctx)) })
		b.took["slice"] = append(b.took["slice"], b.bareSlice(ctx))
		warm.Wanted = 2
		b.took["warm"] = append(b.took["warm"], b.scaledOut(ctx, warm))
		b.scaledIn(ctx, warm, 1)
	}
	b.took["standby"] = append(b.took["standby"], b.ahead(ctx))
	for _, pair := range [][2]string{{"cold", "liqoctl"}, {"warm", "slice"}, {"standby", "slice"}} {
		ours, theirs := median(b.took[pair[0]]), median(b.took[pair[1]])
		fmt.Printf("BENCH scale-out-%s %.2f s %.2f %s\n", pair[0], ours, ours/theirs, pair[1])
		t.Logf("%s: %v, %s: %v", pair[0], b.took[pair[0]], pair[1], b.took[pair[1]])
	}
}

func median(of []time.Duration) float64 {
	slices.Sort(of)
	return of[len(of)/2].Seconds()
}

type ratio struct {
	t    *testing.T
	s    *stack
	took map[string][]time.Duration
}

func (b *ratio) until(ctx context.Context, condition func(context.Context) error) {
	b.t.Helper()
	require.NoError(b.t, testkit.Poll(ctx, 4*time.Minute, pollEvery, condition))
}

// scaledOut returns the time until all wanted nodes exist. One wanted node is missing at the start.
func (b *ratio) scaledOut(ctx context.Context, a *player.Player) time.Duration {
	b.t.Helper()
	var before player.Picture
	b.until(ctx, func(context.Context) (err error) {
		before, err = a.Look()
		return err
	})
	require.Len(b.t, before.Listed, a.Wanted-1)
	took := b.node(ctx, func() {
		b.until(ctx, func(ctx context.Context) error { // a new group books nothing for a second
			request := &protos.NodeGroupIncreaseSizeRequest{Id: a.Group(), Delta: 1}
			_, err := b.s.client.NodeGroupIncreaseSize(ctx, request)
			return err
		})
	}, func(n *corev1.Node) bool {
		return strings.HasPrefix(n.Spec.ProviderID, "liqo://"+a.Group()+"/") &&
			!slices.Contains(before.Listed, n.Spec.ProviderID)
	})
	b.until(ctx, func(context.Context) error { // CA also sees the end
		seen, err := a.Look()
		if err == nil && len(seen.Running) < a.Wanted {
			err = fmt.Errorf("%v", seen)
		}
		return err
	})
	return took
}

// node calls the function `do`. It returns the time until a Node for which `is` returns true accepts pods.
func (b *ratio) node(ctx context.Context, do func(), is func(*corev1.Node) bool) time.Duration {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	nodes, err := b.s.consumer.kube.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{})
	require.NoError(b.t, err)
	defer nodes.Stop()
	began := time.Now()
	do()
	for event := range nodes.ResultChan() {
		if n, ok := event.Object.(*corev1.Node); ok && is(n) && takesPods(n) {
			return time.Since(began)
		}
	}
	require.FailNow(b.t, "the watch of nodes ended before one was Ready")
	return 0
}

// takesPods reports whether a Node is Ready and Kubernetes has removed the taint of every new node.
func takesPods(n *corev1.Node) bool {
	return isReady(n) && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeNetworkUnavailable
	})
}

// ahead returns the time until the first node of a group exists. The group's standby has already peered with the
// first provider.
func (b *ratio) ahead(ctx context.Context) time.Duration {
	b.t.Helper()
	path := filepath.Join(b.s.dir, "groups.yaml")
	require.NoError(b.t, os.WriteFile(path, []byte(ratioGroups+aheadGroup), 0o600))
	a := player.Of(b.t, "ahead", b.s.client)
	b.until(ctx, func(ctx context.Context) error {
		_, err := a.Look()
		if err != nil {
			return err
		}
		phase, err := b.s.peeringPhase(ctx, b.s.providers[0])
		if err == nil && phase != fleet.Established {
			err = fmt.Errorf("the peering is %s", phase)
		}
		return err
	})
	require.NoError(b.t, b.s.providers[0].count(ctx, resourceSlices, 0))
	a.Wanted = 1
	return b.scaledOut(ctx, a)
}

// scaledIn removes the newest instances.
func (b *ratio) scaledIn(ctx context.Context, a *player.Player, leave int) {
	b.t.Helper()
	seen, err := a.Look()
	require.NoError(b.t, err)
	slices.Sort(seen.Listed) // the numbers in the ids increase
	require.NoError(b.t, a.Remove(seen.Listed[leave:]))
	a.Wanted = leave
	gone := seen.Listed[leave:]
	b.until(ctx, func(context.Context) error {
		now, err := a.Look()
		if err == nil && len(now.Listed) > leave {
			err = fmt.Errorf("%v", now)
		}
		return err
	})
	b.until(ctx, func(ctx context.Context) error {
		for _, id := range gone {
			if n, err := b.s.consumer.node(ctx, id); err == nil {
				return fmt.Errorf("node %s is there", n.Name)
			}
		}
		return b.rest(ctx)
	})
}

// rest requires that only the permanent node is left, because a removal would slow down the next measurement.
func (b *ratio) rest(ctx context.Context) error {
	return errors.Join(b.s.consumer.count(ctx, virtualNodes, 1), b.s.providers[1].count(ctx, resourceSlices, 1))
}

// liqoctlPeer returns the time of the manual steps to a Ready node on a provider without a peering.
func (b *ratio) liqoctlPeer(ctx context.Context) time.Duration {
	b.t.Helper()
	first := b.s.providers[0]
	took := b.node(ctx, func() {
		require.NoError(b.t, b.s.liqoctl(ctx, b.s.consumer, "peer", "--remote-kubeconfig", b.s.lab.Kubeconfig(first.name),
			"--gw-server-service-type", "NodePort", "--cpu", "2", "--memory", "4Gi", "--pods", "20", "--timeout", "3m"))
	}, func(n *corev1.Node) bool { return n.Name == first.name })
	require.NoError(b.t, b.s.liqoctl(ctx, b.s.consumer, append(unpeering(b.s, first), "--delete-namespaces")...))
	b.until(ctx, func(ctx context.Context) error { return clean(ctx, first) })
	b.until(ctx, func(ctx context.Context) error { return errors.Join(b.noNamespace(ctx), b.s.grantAnew(ctx, first)) })
	return took
}

// noNamespace requires that the consumer has no tenant namespace of the first provider, because a terminating namespace
// accepts no new objects.
func (b *ratio) noNamespace(ctx context.Context) error {
	name := "liqo-tenant-" + b.s.providers[0].name
	_, err := b.s.consumer.kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		return fmt.Errorf("namespace %s is there", name)
	default:
		return err
	}
}

// bareSlice returns the time of the manual steps to one more Ready node on a provider with a peering.
func (b *ratio) bareSlice(ctx context.Context) time.Duration {
	b.t.Helper()
	second := b.s.providers[1]
	in := b.s.consumer.liqo.Resource(resourceSlices).Namespace("liqo-tenant-" + second.name)
	name := fmt.Sprintf("by-hand-%d", len(b.took["slice"])) // a repeated name would wait for the remains of the first
	took := b.node(ctx, func() {
		_, err := in.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authentication.liqo.io/v1beta1", "kind": "ResourceSlice",
			"metadata": map[string]any{"name": name, "annotations": map[string]any{"liqo.io/create-virtual-node": "true"},
				"labels": map[string]any{"liqo.io/remote-cluster-id": second.name, "liqo.io/remoteID": second.name,
					"liqo.io/replication": "true"}},
			"spec": map[string]any{"class": "default", "providerClusterID": second.name,
				"resources": map[string]any{"cpu": "2", "memory": "4Gi", "pods": "20", "ephemeral-storage": "10Gi"}},
		}}, metav1.CreateOptions{})
		require.NoError(b.t, err)
	}, func(n *corev1.Node) bool { return n.Name == name })
	require.NoError(b.t, in.Delete(ctx, name, metav1.DeleteOptions{}))
	b.until(ctx, b.rest)
	return took
}
