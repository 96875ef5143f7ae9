package deploy_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/mirror"
)

// mirrorWrites runs the mirror with only the rights of the worker's account. The mirror shows groups and offers as
// objects of the chart's CRDs. kubectl prints the documented columns, and the API server drops no field. If a group
// or an offer is removed, the mirror deletes its object.
func mirrorWrites(t *testing.T, c *cluster) {
	manifest, err := template(t, "--values", valuesFile("plaintext"), "--show-only", "templates/serviceaccounts.yaml",
		"--show-only", "templates/market-rbac.yaml")
	require.NoError(t, err, "%s", manifest)
	c.kubectl(t, nil, "apply", "-f", filepath.Join(chart, "crds")) // the same command as in docs/upgrade.md
	c.kubectl(t, manifest, "apply", "-f", "-")
	defer c.kubectl(t, manifest, "delete", "-f", "-")
	account := nameOf("plaintext") + "-worker"
	config := rest.CopyConfig(c.config)
	config.Impersonate.UserName = "system:serviceaccount:" + namespace + ":" + account
	as, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	objects := mirror.Cluster{Client: as, Namespace: namespace, Hub: "default"}
	require.Eventually(t, func() bool { // new roles and new CRDs take effect after a moment
		_, errGroups := objects.List(t.Context(), mirror.KindGroup)
		_, errOffers := objects.List(t.Context(), mirror.KindOffer)
		return errGroups == nil && errOffers == nil
	}, time.Minute, 100*time.Millisecond)

	m := mirror.New(objects, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	defer running.Wait()
	defer cancel()
	expires := time.Now().Add(time.Hour)
	group := fleet.Snapshot{Group: "burst", Max: 3, Target: 2, Paused: true, Instances: []fleet.InstanceView{
		{Name: "a", Phase: fleet.Ready}, {Name: "b", Phase: fleet.Joining}}}
	m.Groups([]fleet.Snapshot{group, {Group: "gone"}}, nil, nil)
	m.Offers([]market.Offer{{Name: "milan", Provider: "milan-id", Nodes: 1, MaxNodes: 4, Price: 0.08, Currency: "EUR",
		Expires: &expires, Lendable: corev1.ResourceList{"cpu": resource.MustParse("16")},
		Free: corev1.ResourceList{"cpu": resource.MustParse("14"), "memory": resource.MustParse("28Gi")}}})
	lines := func(of string) (fields [][]string) {
		for line := range strings.Lines(c.kubectl(t, nil, "-n", namespace, "get", of)) {
			words := strings.Fields(line)
			fields = append(fields, words[:len(words)-1]) // all columns except the age
		}
		return fields
	}
	prints := func(of string, want [][]string) {
		t.Helper()
		require.EventuallyWithT(t, func(t *assert.CollectT) { require.Equal(t, want, lines(of)) }, time.Minute,
			100*time.Millisecond)
	}
	prints("lng", [][]string{{"NAME", "TARGET", "READY", "PENDING", "MIN", "MAX", "COST/H", "WHY"},
		{"burst", "2", "1", "1", "0", "3", "0", "Paused"}, {"gone", "0", "0", "0", "0", "0", "0"}})
	prints("lo", [][]string{{"NAME", "PROVIDER", "NODES", "CPU", "MEMORY", "PRICE", "CONDITION"},
		{"milan", "milan-id", "1", "14", "28Gi", "0.08", "Available"}})
	c.kubectl(t, nil, "-n", namespace, "wait", "--for=condition=Available", "lo/milan", "--timeout=10s")
	c.kubectl(t, nil, "-n", namespace, "wait", "--for=condition=CanGrow=false", "lng/burst", "--timeout=10s")
	require.Contains(t, c.kubectl(t, nil, "-n", namespace, "get", "liqo-autoscaler"), "liqooffer.liqo-autoscaler.io/milan")

	version := func() string {
		u, err := as.Resource(mirror.GroupVersion.WithResource("liqonodegroups")).Namespace(namespace).List(t.Context(),
			metav1.ListOptions{})
		require.NoError(t, err)
		return u.Items[0].GetResourceVersion()
	}
	before := version()
	m.Groups([]fleet.Snapshot{group}, nil, nil) // the mirror compares this group before it deletes the other
	prints("lng", [][]string{{"NAME", "TARGET", "READY", "PENDING", "MIN", "MAX", "COST/H", "WHY"},
		{"burst", "2", "1", "1", "0", "3", "0", "Paused"}})
	require.Equal(t, before, version(), "the API server keeps what was written, so nothing is written again")
	m.Groups(nil, nil, nil)
	m.Offers(nil)
	require.Eventually(t, func() bool {
		groups, errGroups := objects.List(t.Context(), mirror.KindGroup)
		offers, errOffers := objects.List(t.Context(), mirror.KindOffer)
		return errGroups == nil && errOffers == nil && len(groups)+len(offers) == 0
	}, time.Minute, 100*time.Millisecond)
}
