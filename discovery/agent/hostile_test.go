package agent

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// Liqo gives a consumer write access to its slices on the provider, including their labels and status. Regardless of
// the content that it writes there, the consumer gets no more than it was granted, and takes nothing from other
// consumers.
func TestConsumerCannotGrantItselfCapacity(t *testing.T) {
	set := func(value any, path ...string) func(*testing.T, *unstructured.Unstructured) {
		return func(t *testing.T, o *unstructured.Unstructured) {
			require.NoError(t, unstructured.SetNestedField(o.Object, value, path...))
		}
	}
	resources := func(cpu string) func(*testing.T, *unstructured.Unstructured) {
		return set(map[string]any{"cpu": cpu}, "status", "resources")
	}
	for what, write := range map[string]func(*testing.T, *unstructured.Unstructured){
		"labels off": func(_ *testing.T, o *unstructured.Unstructured) { o.SetLabels(nil) },
		"labels of another consumer": func(_ *testing.T, o *unstructured.Unstructured) {
			o.SetLabels(map[string]string{"liqo.io/originID": "turin", labelOurs: ours, labelHub: "default"})
		},
		"another consumer's id":    set("turin", "spec", "consumerClusterID"),
		"no id":                    set("", "spec", "consumerClusterID"),
		"another class":            set("example", "spec", "class"),
		"less in its status":       resources("0"),
		"more in its status":       resources("1000"),
		"no amounts in its status": resources("1e1.5"),
		"endless amounts":          resources("1e100000000"),
		"an answer of its own":     set([]any{}, "status", "conditions"),
		"an answer that says refused": set([]any{map[string]any{"type": "Resources", "status": denied}}, "status",
			"conditions"),
	} {
		t.Run(what, func(t *testing.T) {
			c := newCluster()
			config := Config{Offers: []OfferConfig{{Consumer: "munich",
				Cap: corev1.ResourceList{"cpu": amounts("2", "0")["cpu"]}}, {Consumer: "turin"}}}
			c.tenant(t, "munich")
			c.tenant(t, "turin")
			g := c.granter(config, room("3"))
			for n := range 2 {
				c.create(t, asking("munich", n))
			}
			rounds(t, g)
			slices := c.objects.Resource(sliceResource)
			for n := range 2 {
				o, err := slices.Namespace("liqo-tenant-munich").Get(t.Context(), asking("munich", n).GetName(),
					metav1.GetOptions{})
				require.NoError(t, err)
				write(t, o)
				_, err = slices.Namespace("liqo-tenant-munich").Update(t.Context(), o, metav1.UpdateOptions{})
				require.NoError(t, err)
			}
			c.create(t, asking("munich", 2)) // exceeds munich's cap
			c.create(t, asking("turin", 3))
			c.create(t, asking("turin", 4)) // only one of these slices fits
			rounds(t, g)
			answers := c.answered(t)
			require.Equal(t, []string{denied, accepted, denied},
				[]string{answers["munich-002"], answers["turin-003"], answers["turin-004"]})
		})
	}
}

// A consumer changes the class of its slice to Liqo's own class. For each resource, the larger of two amounts then
// counts: Liqo's grant, and the agent's earlier grant.
func TestSliceThatChangesItsClassCountsWithLiqosGrant(t *testing.T) {
	changed := slice("munich", "", amounts("3", "1Gi"), func(s *Slice) {
		s.Booked, s.Recorded, s.Spec.Class = amounts("1", "2Gi"), true, "default"
	})
	require.Equal(t, "cpu=3, memory=2Gi", renderAmounts(changed.Granted()))
	changed.Spec.Class = Class
	require.Equal(t, "cpu=1, memory=2Gi", renderAmounts(changed.Granted()))
}

// A consumer writes a grant into the status of a slice that has no entry in the record. This slice has no grant, and
// the agent logs this once.
func TestForgedGrantIsIgnored(t *testing.T) {
	c := newCluster()
	c.ask(t, 1)
	g := c.granter(toBoth, room("2"))
	rounds(t, g)
	forged := asking("munich", 7)
	forged.Object["status"] = map[string]any{"resources": map[string]any{"cpu": "1000"},
		"conditions": []any{map[string]any{"type": "Resources", "status": accepted}}}
	c.create(t, forged)
	c.create(t, asking("turin", 8))
	rounds(t, g)
	require.Equal(t, accepted, c.answered(t)["turin-008"])
	require.Len(t, g.forged, 1)
	require.Len(t, g.record.grants(), 2)
}

// An API server accepts no answer to a consumer's slice, for example because the slice is too large. This delays only
// that consumer.
func TestUnanswerableSliceDelaysOnlyItsConsumer(t *testing.T) {
	c := newCluster()
	c.ask(t, 2)
	tries := 0
	c.objects.PrependReactor("update", "resourceslices", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetNamespace() == "liqo-tenant-munich" {
			tries++
			return true, nil, apierrors.NewInternalError(fmt.Errorf("etcdserver: request is too large"))
		}
		return false, nil, nil
	})
	g := c.granter(toBoth, room("60"))
	for n := range 10 {
		c.create(t, asking("turin", 11+2*n))
		again, _ := g.round(t.Context())
		require.Positive(t, again)
	}
	require.Equal(t, 11, c.granted(t), "of turin's slices")
	require.Equal(t, 1, tries, "it is tried again a second later")
}

// One consumer's slice is retried only once a minute. A new slice of another consumer is still answered immediately.
func TestRetriedSliceDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.ask(t, 1) // a slice of munich
		c.objects.PrependReactor("update", "resourceslices", func(a clienttesting.Action) (bool, runtime.Object, error) {
			return a.GetNamespace() == "liqo-tenant-munich", nil, apierrors.NewInternalError(errors.New("too large"))
		})
		g := c.granter(toBoth, room("60"))
		ctx, cancel := context.WithCancel(t.Context())
		waits, ended := make(chan struct{}, 1), make(chan struct{})
		go func() {
			defer close(ended)
			g.run(ctx, waits)
		}()
		<-time.After(10 * time.Minute) // time in the synctest bubble: by now the slice is retried once a minute
		for n := range 3 {             // the second slice comes just after a round
			began, slice := time.Now(), asking("turin", 1+2*n)
			c.create(t, slice)
			waits <- struct{}{}
			for c.answered(t)[slice.GetName()] == "" && time.Since(began) < time.Minute {
				<-time.After(100 * time.Millisecond)
			}
			require.Less(t, time.Since(began), 3*time.Second, "of the bubble")
		}
		cancel()
		<-ended
	})
}

// A consumer whose Tenant is gone keeps its grants.
func TestGrantStaysAfterItsTenantIsGone(t *testing.T) {
	c := newCluster()
	c.ask(t, 1)
	g := c.granter(toBoth, room("1"))
	rounds(t, g)
	require.NoError(t, c.objects.Resource(tenantResource).Namespace("liqo-tenant-munich").Delete(t.Context(), "munich",
		metav1.DeleteOptions{}))
	c.create(t, asking("turin", 1))
	rounds(t, g)
	require.Equal(t, denied, c.answered(t)["turin-001"])
}

// The number of slices of one consumer is bounded, so that no consumer can fill the record of grants.
func TestSlicesOfAConsumerAreBounded(t *testing.T) {
	w := room("10000")
	for range maxSlices {
		w.Slices = append(w.Slices, slice("munich", "", amounts("1", "0")))
	}
	v := toBoth.Judge(w, waiting("munich", amounts("1", "0")), Tenant{"munich", tenantActive})
	require.Equal(t, reasonTooMany, v.Reason)
	require.Equal(t, "munich has 500 slices, the maximum for one consumer", v.Message)
	require.True(t, toBoth.Judge(w, waiting("turin", amounts("1", "0")), Tenant{"turin", tenantActive}).Granted)
}

// The number of series of a metric does not depend on the content that consumers write.
func TestSeriesAreBounded(t *testing.T) {
	w := room("8")
	for n := range 100 {
		amounts := amounts("1", "1Gi", fmt.Sprint("example.com/", n), "1")
		w.Slices = append(w.Slices, slice(fmt.Sprint("stranger-", n), "", amounts))
	}
	w.Slices = append(w.Slices, slice("munich", "", amounts("2", "1Gi")))
	shown := toBoth.shown(w)
	require.Len(t, shown, 2)
	require.Equal(t, "cpu=2, memory=1Gi", renderAmounts(shown["munich"]))
	require.Equal(t, "cpu=100, memory=100Gi", renderAmounts(shown["other"]))
}
