package nodewatch_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/nodewatch"
)

// shown is an activities.EventRecorder that records the events.
type shown struct {
	mu  sync.Mutex
	all []activities.Event
}

func (s *shown) Record(n activities.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, n)
}

func (s *shown) messages() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.all {
		all = append(all, fmt.Sprintf("%s %s: %s", n.Reason, n.Node, n.Message))
	}
	return all
}

// differing is a scene that records the reports.
type differing struct {
	*scene
	tell   func(...fleet.Found)
	counts nodewatch.Differing
	shown  shown
	log    testkit.Buffer
}

func (d *differing) warnings() int {
	return strings.Count(d.log.String(), `level=WARN msg="a node differs from Cluster Autoscaler's template"`)
}

func newDiffering(t *testing.T) *differing {
	d := &differing{scene: newScene(t)}
	d.tell = d.script(func(o *nodewatch.Options) {
		o.Differing, o.Events, o.Logger = &d.counts, &d.shown, slog.New(slog.NewTextHandler(&d.log, nil))
	})
	return d
}

func (d *differing) node(how ...string) fleet.Found {
	found := d.ready("edge-t0-1")
	found.Differs = how
	return found
}

func TestDifferencesAreReportedOnce(t *testing.T) {
	d := newDiffering(t)
	const cpu, tier = "allocatable cpu is 1 instead of 2", "label tier is x instead of burst"
	first := "NodeDiffers lca-edge-t0-1-1: it differs from the template that Cluster Autoscaler received: " + cpu
	d.tell(d.node())
	require.Equal(t, map[string]int{"edge": 0}, d.counts.Of(), "0, so that alerts see it come")
	require.Empty(t, d.shown.messages())

	d.tell(d.node(cpu))
	d.tell(d.node(cpu))
	require.Equal(t, map[string]int{"edge": 1}, d.counts.Of())
	require.Equal(t, []string{first}, d.shown.messages())
	require.Equal(t, 1, d.warnings())

	d.tell(d.node(tier, cpu), d.node(tier, cpu))
	require.Equal(t, map[string]int{"edge": 1}, d.counts.Of(), "one Node")
	require.Equal(t, []market.DifferentNode{{Node: "lca-edge-t0-1-1", Group: "edge", Differs: tier + "; " + cpu}},
		d.counts.Nodes(), "as it is now")
	require.Equal(t, []string{first, strings.Replace(first, cpu, tier, 1)}, d.shown.messages(), "what is new alone")
	require.Equal(t, 2, d.warnings())

	d.tell(d.node(), d.node(cpu))
	require.Equal(t, 2, d.warnings(), "it was reported before")
	d.tell(d.node())
	require.Equal(t, map[string]int{"edge": 0}, d.counts.Of())
	require.Empty(t, d.counts.Nodes())
	require.Subset(t, d.groups.of("edge-t0-1"), []fleet.EventKind{fleet.Registered})
	require.NotContains(t, d.groups.of("edge-t0-1"), fleet.Lost, "nothing is decided by it")
}

// While a Node is not ready, its last known difference still counts. The difference of a Node that is being removed, or
// that Cluster Autoscaler does not use, no longer counts.
func TestOnlyNodesThatCAUsesCount(t *testing.T) {
	const how = "label tier=burst is missing"
	for name, test := range map[string]struct {
		then func(*fleet.Found)
		want int
	}{
		"not ready":      {func(f *fleet.Found) { f.Ready, f.Differs = false, nil }, 1},
		"no longer ours": {func(f *fleet.Found) { f.Stamped, f.Differs, f.Marked = false, nil, false }, 0},
		"going":          {func(f *fleet.Found) { f.Terminating = true }, 0},
		"gone":           {func(f *fleet.Found) { *f = fleet.Found{Attempt: f.Attempt} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDiffering(t)
			d.tell(d.node(how))
			require.Equal(t, map[string]int{"edge": 1}, d.counts.Of())
			now := d.node(how)
			test.then(&now)
			d.tell(now)
			require.Equal(t, test.want, d.counts.Of()["edge"])
			require.Equal(t, 1, d.warnings())
		})
	}
}

// A Node that changes again and again fills neither the log nor the memory.
func TestReportsOfANodeAreBounded(t *testing.T) {
	d := newDiffering(t)
	for n := range 60 {
		d.tell(d.node(fmt.Sprintf("label tier is %d instead of burst", n)))
	}
	require.Equal(t, 50, d.warnings())
	require.Len(t, d.shown.messages(), 50)
	require.Equal(t, map[string]int{"edge": 1}, d.counts.Of())
}
