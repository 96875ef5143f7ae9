package grpcserver

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
	"k8s.io/utils/ptr"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// fakeConfig is a config that a test changes.
type fakeConfig struct {
	mu    sync.Mutex
	next  *Settings
	err   error
	asked int
}

func (c *fakeConfig) reload() (Settings, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.err != nil || c.next == nil {
		return Settings{}, false, c.err
	}
	next := *c.next
	c.next = nil
	return next, true, nil
}

// retired returns the groups that the config no longer contains and that the server serves until they are empty.
func retired(s *Server) (ids []string) {
	for _, g := range s.roster.Load().list {
		if g.terms.Load().retired {
			ids = append(ids, g.id)
		}
	}
	return ids
}

// kept returns, for each group, the reason why the configured shape, labels or taints are not in force.
func kept(s *Server) map[string]string {
	why := map[string]string{}
	for _, g := range s.roster.Load().list {
		if t := g.terms.Load(); t.kept != "" {
			why[g.id] = t.kept
		}
	}
	return why
}

func (c *fakeConfig) write(version string, specs ...fleet.GroupSpec) {
	c.set(Settings{Specs: specs, Version: version}, nil)
}

// set makes the next reload read these settings. If err is not nil, every reload fails until the next call of set.
func (c *fakeConfig) set(s Settings, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next, c.err = &s, err
}

func (c *fakeConfig) options(g Groups, specs ...fleet.GroupSpec) Options {
	return Options{Groups: g, Specs: specs, Version: "v1", Reload: c.reload, Logger: quiet}
}

// reloading returns a server that has read its groups, a client for this server, and its config. A test can change
// the config.
func reloading(t *testing.T, g Groups, specs ...fleet.GroupSpec) (client, *Server, *fakeConfig) {
	t.Helper()
	config := &fakeConfig{}
	s, err := New(config.options(g, specs...))
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	return newClient(t, s), s, config
}

func (c client) groups() map[string]*protos.NodeGroup {
	c.t.Helper()
	resp, err := c.NodeGroups(c.ctx(), &protos.NodeGroupsRequest{})
	require.NoError(c.t, err)
	out := map[string]*protos.NodeGroup{}
	for _, g := range resp.GetNodeGroups() {
		out[g.GetId()] = g
	}
	return out
}

func (c client) template(group string) *corev1.Node {
	c.t.Helper()
	resp, err := c.NodeGroupTemplateNodeInfo(c.ctx(), &protos.NodeGroupTemplateNodeInfoRequest{Id: group})
	require.NoError(c.t, err)
	return resp.GetNodeInfo()
}

func TestReloadChangesAndAddsGroups(t *testing.T) {
	f := newFake()
	c, s, config := reloading(t, f, spec("cpu", 0, 5))
	require.NoError(t, c.increase("cpu", 3))
	require.NoError(t, c.refresh())
	require.Equal(t, "v1", s.config.Load().version)

	changed := spec("cpu", 1, 7)
	changed.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}}
	config.write("v2", changed, spec("gpu", 0, 2))
	require.EqualValues(t, 5, c.groups()["cpu"].GetMaxSize(), "not before Refresh")
	require.NoError(t, c.refresh())
	groups := c.groups()
	require.Len(t, groups, 2)
	require.EqualValues(t, 1, groups["cpu"].GetMinSize())
	require.EqualValues(t, 7, groups["cpu"].GetMaxSize())
	require.Equal(t, 3, c.target("cpu"), "its instances are still known")
	require.Zero(t, c.target("gpu"))
	require.NoError(t, c.increase("gpu", 2))
	require.NoError(t, c.increase("cpu", 4))
	requireCode(t, codes.OutOfRange, c.increase("cpu", 1))
	require.Equal(t, changed.Hash(), f.published("cpu").SpecHash, "brought in force")
	require.Equal(t, "v2", s.config.Load().version)

	configured := f.called("configure")
	require.NoError(t, c.refresh())
	require.Equal(t, configured, f.called("configure"), "once")
}

func TestBrokenConfigChangesNothing(t *testing.T) {
	var logs testkit.Buffer
	config := &fakeConfig{}
	o := config.options(newFake(), spec("cpu", 0, 5))
	o.Logger = slog.New(slog.NewTextHandler(&logs, nil))
	s, err := New(o)
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	c := newClient(t, s)

	unread := errors.New("nodeGroups[0].max: is 0: give at least 1")
	for _, broken := range []struct {
		specs []fleet.GroupSpec
		err   error
	}{{err: unread}, {}, {specs: []fleet.GroupSpec{spec("cpu", 0, 6), spec("cpu", 0, 7)}}} {
		logs.Reset()
		config.set(Settings{Specs: broken.specs, Version: "v2"}, broken.err)
		for range 3 {
			require.NoError(t, c.refresh(), "a broken file never fails an RPC")
		}
		require.EqualValues(t, 5, c.groups()["cpu"].GetMaxSize())
		require.NoError(t, c.increase("cpu", 1))
		require.Equal(t, "v1", s.config.Load().version)
		if broken.err != nil { // the config stays broken
			require.Equal(t, broken.err.Error(), s.config.Load().broken)
			require.Equal(t, 1, strings.Count(logs.String(), "the new config has errors"), "said once")
		}
		require.Contains(t, logs.String(), "the new config has errors")
	}
	config.write("v3", spec("cpu", 0, 9))
	require.NoError(t, c.refresh())
	require.EqualValues(t, 9, c.groups()["cpu"].GetMaxSize())
	require.Empty(t, s.config.Load().broken)
	require.Equal(t, "v3", s.config.Load().version)
}

// Shape, labels and taints of a group do not change after CA may have read them. All other fields change.
func TestChangedTemplateIsKept(t *testing.T) {
	for name, change := range map[string]func(*fleet.GroupSpec){
		"nodes": func(s *fleet.GroupSpec) { s.Nodes = fleet.NodesMachine },
		"shape": func(s *fleet.GroupSpec) {
			s.Shape = maps.Clone(s.Shape)
			s.Shape[corev1.ResourceCPU] = resource.MustParse("16")
		},
		"labels": func(s *fleet.GroupSpec) { s.Labels = map[string]string{"tier": "burst"} },
		"taints": func(s *fleet.GroupSpec) { s.GroupTaint = corev1.TaintEffectNoSchedule },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			c, s, config := reloading(t, f, spec("cpu", 0, 5), spec("idle", 0, 5))
			require.NoError(t, c.increase("cpu", 1))
			template := c.template("cpu").String()

			cpu, idle := spec("cpu", 0, 8), spec("idle", 0, 8)
			change(&cpu)
			change(&idle)
			config.write("v2", cpu, idle)
			require.NoError(t, c.refresh())
			require.Equal(t, template, c.template("cpu").String())
			require.EqualValues(t, 8, c.groups()["cpu"].GetMaxSize(), "the rest applies")
			require.Equal(t, cpu.WithTemplateOf(spec("cpu", 0, 5)).Hash(), f.published("cpu").SpecHash)
			require.Equal(t, []string{"cpu"}, slices.Collect(maps.Keys(kept(s))))
			require.Contains(t, kept(s)["cpu"], name+" changed, but")
			require.Contains(t, kept(s)["cpu"], "give the changed group a new id")
			require.Equal(t, fleet.GroupNotice{Name: fleet.BlockChangeNotInForce, Message: kept(s)["cpu"]},
				f.published("cpu").Notice, "status tells it")
			require.Equal(t, idle.Hash(), f.published("idle").SpecHash, "CA has never seen one of its nodes")

			require.NoError(t, c.remove("cpu", c.ids("cpu")...))
			f.drop("cpu")
			require.NoError(t, c.refresh())
			config.write("v3", cpu)
			require.NoError(t, c.refresh())
			require.Equal(t, template, c.template("cpu").String(), "CA may remember for as long as it runs")

			config.write("v4", spec("cpu", 0, 8))
			require.NoError(t, c.refresh())
			require.Empty(t, kept(s))
			require.Empty(t, f.published("cpu").Notice)
		})
	}
}

// The config has changed while no server ran. Shape, labels and taints that CA may have read stay in force.
func TestChangedTemplateIsKeptOverARestart(t *testing.T) {
	f := newFake()
	c, _, _ := reloading(t, f, spec("cpu", 0, 5), spec("idle", 0, 5))
	require.NoError(t, c.increase("cpu", 1))
	template := c.template("cpu").String()

	cpu, idle := spec("cpu", 0, 8), spec("idle", 0, 8)
	cpu.Labels, idle.Labels = map[string]string{"tier": "burst"}, map[string]string{"tier": "burst"}
	again, s, _ := reloading(t, f, cpu, idle)
	require.Equal(t, template, again.template("cpu").String())
	require.EqualValues(t, 8, again.groups()["cpu"].GetMaxSize())
	require.Contains(t, kept(s)["cpu"], "labels changed")
	require.Contains(t, f.published("cpu").Notice.Message, "labels changed")
	require.NotContains(t, kept(s), "idle")
	require.Contains(t, again.template("idle").GetLabels(), "tier")
}

// requireRetired checks that CA sees the group with its size as max, so that CA can only shrink the group.
func requireRetired(t *testing.T, c client, group string, size int) {
	t.Helper()
	g := c.groups()[group]
	require.NotNil(t, g)
	require.Zero(t, g.GetMinSize())
	require.EqualValues(t, size, g.GetMaxSize())
	require.Equal(t, size, c.target(group))
	requireCode(t, codes.FailedPrecondition, c.increase(group, 1))
	require.NotEmpty(t, c.template(group).Status.Allocatable)
}

func TestRemovedGroupIsServedUntilItIsEmpty(t *testing.T) {
	f := newFake()
	c, s, config := reloading(t, f, spec("cpu", 0, 5), spec("gpu", 2, 5), spec("idle", 0, 5))
	require.NoError(t, c.increase("gpu", 3))
	f.ready("gpu", 3)
	ids := c.ids("gpu")

	config.write("v2", spec("cpu", 0, 5))
	require.NoError(t, c.refresh())
	require.NotContains(t, c.groups(), "idle", "empty, so it ends immediately")
	require.Equal(t, []string{"idle"}, f.ended())
	requireRetired(t, c, "gpu", 3)
	require.Equal(t, "gpu", c.groupOf(&protos.ExternalGrpcNode{ProviderID: ids[0]}).GetId())
	require.Equal(t, []string{"gpu"}, retired(s))
	require.Equal(t, fleet.BlockRetired, f.published("gpu").Notice.Name, "status tells it")
	require.Equal(t, f.published("gpu").Notice, s.roster.Load().byID["gpu"].picture.Load().Notice)
	require.Contains(t, f.published("gpu").Notice.Message, "no longer in the config")

	require.NoError(t, c.remove("gpu", ids[0], ids[1]))
	f.drop("gpu")
	require.NoError(t, c.refresh())
	requireRetired(t, c, "gpu", 1)

	require.NoError(t, c.remove("gpu", ids[2]))
	require.NoError(t, c.refresh())
	require.Contains(t, c.groups(), "gpu", "one is still being deleted")
	f.drop("gpu")
	require.NoError(t, c.refresh())
	require.NotContains(t, c.groups(), "gpu")
	require.Empty(t, retired(s))
	require.Equal(t, []string{"idle", "gpu"}, f.ended())
	requireCode(t, codes.NotFound, c.increase("gpu", 1))

	// After the group has ended, a group with the same id may have another shape, because CA has forgotten the ended
	// group.
	gpu := spec("gpu", 0, 2)
	gpu.Shape[corev1.ResourceCPU] = resource.MustParse("32")
	config.write("v3", spec("cpu", 0, 5), gpu)
	require.NoError(t, c.refresh())
	require.Equal(t, "32", c.template("gpu").Status.Capacity.Cpu().String())
	require.NoError(t, c.increase("gpu", 2))
}

// The server writes a message about the config into a group, and `status` shows the message. When the write fails,
// the server logs the error, and the next Refresh writes the message again.
func TestFailedConfigMessageIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, config := newFake(), &fakeConfig{}
		var logs testkit.Buffer
		o := config.options(f, spec("cpu", 0, 5), spec("gpu", 0, 5))
		o.Logger = slog.New(slog.NewTextHandler(&logs, nil))
		s, err := New(o)
		require.NoError(t, err)
		d := direct{t, s}
		require.NoError(t, d.refresh())
		_, err = f.Grow(t.Context(), "gpu", 1, 0, fleet.Position{})
		require.NoError(t, err)
		require.NoError(t, d.refresh())

		const complaint = "cannot update the notice of a node group; status may be outdated"
		config.write("v2", spec("cpu", 0, 5))
		f.set(func(f *fakeGroups) { f.slow = time.Minute })
		require.NoError(t, d.refresh())
		require.Empty(t, f.published("gpu").Notice)
		require.Contains(t, logs.String(), complaint)
		logs.Reset()
		f.set(func(f *fakeGroups) { f.slow = 0 })
		require.NoError(t, d.refresh())
		require.Equal(t, fleet.BlockRetired, f.published("gpu").Notice.Name)
		require.NotContains(t, logs.String(), complaint)
	})
}

func TestRemovedGroupComesBackBeforeItIsEmpty(t *testing.T) {
	f := newFake()
	c, s, config := reloading(t, f, spec("cpu", 0, 5), spec("gpu", 0, 5))
	require.NoError(t, c.increase("gpu", 1))
	config.write("v2", spec("cpu", 0, 5))
	require.NoError(t, c.refresh())
	requireRetired(t, c, "gpu", 1)
	config.write("v3", spec("gpu", 0, 4), spec("cpu", 0, 5))
	require.NoError(t, c.refresh())
	require.EqualValues(t, 4, c.groups()["gpu"].GetMaxSize())
	require.Empty(t, retired(s))
	require.Empty(t, f.published("gpu").Notice)
	require.NoError(t, c.increase("gpu", 3))
}

// A group was removed from the config while no server ran. A server that starts finds it.
func TestRemovedGroupIsFoundAfterARestart(t *testing.T) {
	f := newFake()
	c, _, _ := reloading(t, f, spec("cpu", 0, 5), spec("gpu", 0, 5), spec("idle", 0, 5))
	require.NoError(t, c.increase("gpu", 2))
	f.ready("gpu", 2)
	template := c.template("gpu").String()

	again, s, _ := reloading(t, f, spec("cpu", 0, 5))
	requireRetired(t, again, "gpu", 2)
	require.Equal(t, template, again.template("gpu").String())
	require.Equal(t, []string{"gpu"}, retired(s), "the empty one is not")
	require.NoError(t, again.remove("gpu", again.ids("gpu")...))
	f.drop("gpu")
	require.NoError(t, again.refresh())
	require.Len(t, again.groups(), 1)
}

// A removed group cannot be read when the server starts. The server finds the group later, when the group can be
// read. This works even when the group has as many standby peerings as nodes.
func TestRemovedGroupIsFoundLater(t *testing.T) {
	f := newFake()
	c, _, _ := reloading(t, f, specs("cpu", "gpu")...)
	require.NoError(t, c.increase("gpu", 1))
	f.change("gpu", func(l *fleet.Ledger) {
		l.Standby = []fleet.Standby{{Provider: "milan", Key: "standby/gpu/e-1", State: fleet.HoldGranted}}
	})
	f.set(func(f *fakeGroups) { f.failing["gpu"] = errors.New("no answer") })
	again, _, _ := reloading(t, f, specs("cpu")...)
	require.NoError(t, again.refresh())
	require.Len(t, again.groups(), 1)
	f.set(func(f *fakeGroups) { delete(f.failing, "gpu") })
	require.NoError(t, again.refresh())
	requireRetired(t, again, "gpu", 1)
}

// A removed group has no instances, but has standby peerings. The server ends the group, because the group would keep
// these peerings forever.
func TestRemovedGroupWithStandbysIsEndedAfterARestart(t *testing.T) {
	f := newFake()
	reloading(t, f, spec("cpu", 0, 5), spec("idle", 0, 5))
	f.change("idle", func(l *fleet.Ledger) {
		l.Standby = []fleet.Standby{{Provider: "milan", Key: "standby/idle/e-1", State: fleet.HoldGranted}}
	})
	again, _, _ := reloading(t, f, spec("cpu", 0, 5))
	require.NoError(t, again.refresh())
	require.Equal(t, []string{"idle"}, f.ended())
	require.Len(t, again.groups(), 1)
}

// While the offers are unknown, a group that is derived from offers is missing in the config. Such a group does not
// count as removed.
func TestNoGroupEndsWhileOffersAreUnknown(t *testing.T) {
	f, m := newFake(), &fakeMarket{unknown: true}
	_, _, config := reloading(t, f, spec("cpu", 0, 5), spec("l-milan", 0, 5))
	f.change("l-milan", func(l *fleet.Ledger) {
		l.Standby = []fleet.Standby{{Provider: "milan", Key: "standby/l-milan/e-1", State: fleet.HoldGranted}}
	})
	o := config.options(f, spec("cpu", 0, 5))
	o.Market, o.Derived = m.current, madeOfOffers{}
	s, err := New(o)
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	c := newClient(t, s)
	require.NoError(t, c.refresh())
	require.NoError(t, c.refresh())
	requireRetired(t, c, "l-milan", 0)
	require.Empty(t, f.ended())

	m.set(func() { m.unknown = false })
	config.write("v2", spec("cpu", 0, 5), spec("l-milan", 0, 5))
	require.NoError(t, c.refresh())
	require.Empty(t, retired(s))
	require.Empty(t, f.ended())

	config.write("v3", spec("cpu", 0, 5))
	require.NoError(t, c.refresh())
	require.NoError(t, c.refresh())
	require.Equal(t, []string{"l-milan"}, f.ended(), "now it is removed")
}

// Temporal's index of running workflows lags behind and still shows an ended group. The server still finds the removed
// groups that follow it in the list.
func TestEndedGroupInTheIndexHidesNoOther(t *testing.T) {
	f := newFake()
	c, _, _ := reloading(t, f, spec("cpu", 0, 5), spec("gpu", 0, 5))
	require.NoError(t, c.increase("gpu", 2))
	f.set(func(f *fakeGroups) {
		f.groups["ended"] = &fakeGroup{}
		f.failing["ended"] = fmt.Errorf("nodegroup/ended: %w: %w", fleet.ErrNotRunning, fleet.ErrUnavailable)
	})
	again, s, _ := reloading(t, f, spec("cpu", 0, 5))
	requireRetired(t, again, "gpu", 2)
	require.Equal(t, []string{"gpu"}, retired(s))
}

// Temporal's index may show a group only minutes after the server has started. The server serves the group from then
// on.
func TestRemovedGroupInALateIndexIsServed(t *testing.T) {
	f := newFake()
	c, _, _ := reloading(t, f, spec("cpu", 0, 5), spec("gpu", 0, 5))
	require.NoError(t, c.increase("gpu", 2))
	var late *fakeGroup
	f.set(func(f *fakeGroups) {
		late = f.groups["gpu"]
		delete(f.groups, "gpu")
	})
	again, s, _ := reloading(t, f, spec("cpu", 0, 5))
	require.Empty(t, retired(s))
	f.set(func(f *fakeGroups) { f.groups["gpu"] = late })
	require.NoError(t, again.refresh())
	require.Empty(t, retired(s), "it looks each minute")
	s.searchedAt.Store(time.Now().Add(-findEvery).UnixNano())
	require.NoError(t, again.refresh())
	requireRetired(t, again, "gpu", 2)
}

// When the server cannot list the running groups, it serves the configured groups. If limits for all groups together
// are configured, it refuses each increase, because it cannot check them.
func TestLimitsRefuseGrowthWhileRunningGroupsAreUnknown(t *testing.T) {
	f := newFake()
	c, _, _ := reloading(t, f, spec("gpu", 0, 5))
	require.NoError(t, c.increase("gpu", 2))

	f.set(func(f *fakeGroups) { f.runningErr = fmt.Errorf("list workflows: %w", fleet.ErrUnavailable) })
	s, err := New(Options{Groups: f, Specs: specs("cpu"), Limits: Limits{Nodes: ptr.To(3)}, Logger: quiet})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	again := newClient(t, s)
	require.Len(t, again.groups(), 1)
	requireCode(t, codes.Unavailable, again.increase("cpu", 2))

	f.set(func(f *fakeGroups) { f.runningErr = nil })
	require.NoError(t, again.refresh())
	requireRetired(t, again, "gpu", 2)
	requireCode(t, codes.OutOfRange, again.increase("cpu", 2))
	require.NoError(t, again.increase("cpu", 1))
}
