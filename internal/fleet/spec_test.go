package fleet_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func TestTemplateIsComparedWithoutMax(t *testing.T) {
	cpu := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
	one := fleet.GroupSpec{Max: 1, InstanceSpec: fleet.InstanceSpec{ID: "a", Shape: cpu("2"), Labels: map[string]string{}}}
	two := fleet.GroupSpec{Max: 5, InstanceSpec: fleet.InstanceSpec{ID: "a", Shape: cpu("2000m")}}
	require.True(t, one.SameTemplate(two), "max and spelling do not matter")
	for name, change := range map[string]func(*fleet.GroupSpec){
		"shape":      func(s *fleet.GroupSpec) { s.Shape = cpu("3") },
		"labels":     func(s *fleet.GroupSpec) { s.Labels = map[string]string{"a": "b"} },
		"taints":     func(s *fleet.GroupSpec) { s.Taints = []corev1.Taint{{Key: "a"}} },
		"groupTaint": func(s *fleet.GroupSpec) { s.GroupTaint = corev1.TaintEffectNoSchedule },
	} {
		changed := two
		change(&changed)
		require.False(t, one.SameTemplate(changed), name)
		changed = changed.WithTemplateOf(one)
		require.True(t, one.SameTemplate(changed), name)
		require.Equal(t, 5, changed.Max)
	}
}

func TestGroupTaintIsAddedToTheNodes(t *testing.T) {
	spec := fleet.InstanceSpec{ID: "gpu", Taints: []corev1.Taint{{Key: "burst", Effect: corev1.TaintEffectNoSchedule}}}
	require.Equal(t, spec.Taints, spec.NodeTaints())
	hash := spec.Hash()
	spec.GroupTaint = corev1.TaintEffectPreferNoSchedule
	require.Equal(t, []corev1.Taint{
		{Key: "burst", Effect: corev1.TaintEffectNoSchedule},
		{Key: "liqo-autoscaler.io/group", Value: "gpu", Effect: corev1.TaintEffectPreferNoSchedule},
	}, spec.NodeTaints())
	require.NotEqual(t, hash, spec.Hash())
	require.Len(t, spec.Taints, 1, "the spec is left alone")
}

// The budgets have the defaults that docs/configuration.md states.
func TestDefaultBudgets(t *testing.T) {
	of := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	term := func(d time.Duration) *fleet.Term { return &fleet.Term{Duration: of(d)} }
	defaults := fleet.Budgets{SelectWait: of(20 * time.Second), Peer: of(90 * time.Second), Network: of(5 * time.Minute),
		Join: of(2 * time.Minute), Total: of(12 * time.Minute), Drain: of(10 * time.Minute), FailedTTL: of(time.Hour),
		Unready: term(5 * time.Minute), Isolated: term(30 * time.Minute), PodStart: of(10 * time.Minute)}
	require.Equal(t, defaults, fleet.Budgets{}.WithDefaults())
	negative := fleet.Budgets{SelectWait: of(-1), Peer: of(-1), Network: of(-1), Join: of(-1), Total: of(-1),
		Drain: of(-1), FailedTTL: of(-1), PodStart: of(-1)}
	require.Equal(t, defaults, negative.WithDefaults(), "a negative time is none")
	one := fleet.Budgets{SelectWait: of(1), Peer: of(1), Network: of(1), Join: of(1), Total: of(1), Drain: of(1),
		FailedTTL: of(1), Unready: term(0), Isolated: term(1), PodStart: of(1)}
	require.Equal(t, one, one.WithDefaults())
}

// A term is a duration that starts with an event. Zero means never.
func TestTermStartsWithItsEvent(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, `"5m"`: 5 * time.Minute, `"0s"`: 0} {
		term := fleet.Term{Duration: metav1.Duration{Duration: time.Hour}}
		require.NoError(t, json.Unmarshal([]byte(text), &term), text)
		require.Equal(t, want, term.ZeroIsNever(), text)
	}
	var term fleet.Term
	require.Error(t, json.Unmarshal([]byte(`"soon"`), &term))
	require.Error(t, json.Unmarshal([]byte("1"), &term))
	minute := &fleet.Term{Duration: metav1.Duration{Duration: time.Minute}}
	require.True(t, minute.Over(t0, t0.Add(time.Minute)))
	require.False(t, minute.Over(t0, t0.Add(time.Minute-1)))
	require.False(t, minute.Over(time.Time{}, t0), "it has not begun")
	require.False(t, term.Over(t0, t0.Add(time.Hour)), "never")
	require.False(t, (*fleet.Term)(nil).Over(t0, t0.Add(time.Hour)))
	nanosecond := &fleet.Term{Duration: metav1.Duration{Duration: 1}}
	require.True(t, nanosecond.Over(t0, t0.Add(1)))
}

func TestConditionsAndVerbsAreComplete(t *testing.T) {
	require.True(t, fleet.Selection{}.Empty())
	require.False(t, fleet.Selection{Pack: 1}.Empty())
	require.Len(t, spec().Hash(), 12)
	verbs := []fleet.Verb{fleet.Configure, fleet.Grow, fleet.Shrink, fleet.Release, fleet.Pause}
	require.ElementsMatch(t, verbs, fleet.Verbs)
	seen := map[string]bool{}
	for _, c := range fleet.Conditions {
		require.False(t, seen[c], c)
		seen[c] = true
	}
	for _, kind := range []fleet.RefusingKind{fleet.RefusingCordoned, fleet.RefusingDrained, fleet.RefusingRemoved} {
		require.True(t, seen[fleet.Standing{Tenant: kind}.Condition()], kind)
	}
	d := fleet.Differences{Found: make(fleet.Founds, 1), Missing: make([]string, 2), Unheld: make([]string, 4),
		Unused: make([]string, 8), Lost: make([]fleet.Loss, 16)}
	require.Equal(t, 31, d.Rows())
	d.Remains = true
	require.Equal(t, 32, d.Rows())
	d.Standing = &fleet.Standing{}
	require.Equal(t, 33, d.Rows())
	s := fleet.Snapshot{Standby: []fleet.Standby{{State: fleet.HoldGranted}, {State: fleet.HoldWaiting},
		{State: fleet.HoldGranted}}}
	require.Equal(t, 2, s.Peered(fleet.HoldGranted))
	require.Equal(t, 1, s.Peered(fleet.HoldWaiting))
	require.Zero(t, s.Peered(fleet.HoldRefused))
}

// Ids have the form of labels, with a bounded length. The text of an id is parsed to the same id. Any other text is
// refused.
func TestIDsAreParsedFromTheirText(t *testing.T) {
	for most, valid := range map[int]func(string) bool{24: fleet.ValidGroupID, 63: fleet.ValidProviderID} {
		require.True(t, valid(strings.Repeat("a", most)))
		require.False(t, valid(strings.Repeat("a", most+1)))
		require.True(t, valid("a-1"))
		for _, id := range []string{"", "-a", "a-", "A", "a.b", "a/b"} {
			require.False(t, valid(id), id)
		}
	}
	require.True(t, fleet.ValidHub(strings.Repeat("a", 24)))
	require.False(t, fleet.ValidHub(strings.Repeat("a", 25)))
	for id, want := range map[string][2]string{
		"liqo://a/a-t0-1": {"a", "a-t0-1"}, "liqo://a-b/a-b-t0-1": {"a-b", "a-b-t0-1"},
		"": {}, "a/a-t0-1": {}, "aws://a/a-t0-1": {}, "liqo://a": {}, "liqo://a/": {}, "liqo://a/b-t0-1": {},
		"liqo://A/A-t0-1": {}, "liqo://a/a-t0-1/": {}, "liqo://a/a-t0-1/x": {}, "liqo://a/a-t0": {}, "liqo:///-t0-1": {},
		"liqo://a/a-t0/x-1": {}, "liqo://a/t0-1": {}, "liqo://a/a--1": {}, "liqo://a/a-t0-": {}, "liqo://a/a-t0-1-1": {},
	} {
		group, name, ok := fleet.ParseInstanceID(id)
		require.Equal(t, want, [2]string{group, name}, id)
		require.Equal(t, want != [2]string{}, ok, id)
		if ok {
			require.Equal(t, id, fleet.InstanceID(group, name))
		}
	}
	for key, want := range map[string]struct {
		instance string
		attempt  int
	}{"lca-a-t0-1-2": {"a-t0-1", 2}, "a-t0-1-2": {"a-t0-1-2", 2}, "lca-b-x": {"b", 0},
		"lca--1": {"lca--1", 1}, "lca-": {"lca-", 0}, "b": {"b", 0}} {
		require.Equal(t, want.instance, fleet.InstanceOfKey(key), key)
		require.Equal(t, want.attempt, fleet.AttemptOfKey(key), key)
	}
}

// A name contains the group, the time of the booking and a number. The name of an attempt's objects contains one more
// number.
func TestNamesAreReadBack(t *testing.T) {
	booked, seq, ok := fleet.ParseInstanceName("a-b", fleet.InstanceName("a-b", "t0", 12))
	require.Equal(t, []any{"t0", 12, true}, []any{booked, seq, ok})
	for _, name := range []string{"a-b-t0-x", "a-t0-1", "a-b-t0", "lca-a-b-t0-1-1", "t0-1"} {
		_, _, ok := fleet.ParseInstanceName("a-b", name)
		require.False(t, ok, name)
	}
	_, attempt, ok := fleet.ParseObjectName("a", fleet.ObjectName("a-t0-1", 1))
	require.Equal(t, []any{1, true}, []any{attempt, ok})
}

// NodeLabels adds the labels of the group and the node type to a copy of the spec's labels. The group's label replaces
// a label of the same key in the spec. A type in the spec stays, and a machine has no type. The spec's own labels do
// not change.
func TestNodeLabelsAddGroupAndType(t *testing.T) {
	s := fleet.InstanceSpec{ID: "a", Labels: map[string]string{"disk": "ssd", fleet.LabelGroup: "b"}}
	require.Equal(t, map[string]string{"disk": "ssd", fleet.LabelGroup: "a", fleet.LabelType: fleet.TypeVirtualNode},
		s.NodeLabels())
	require.Equal(t, "b", s.Labels[fleet.LabelGroup])
	s = fleet.InstanceSpec{ID: "a", Labels: map[string]string{fleet.LabelType: "gpu"}}
	require.Equal(t, map[string]string{fleet.LabelGroup: "a", fleet.LabelType: "gpu"}, s.NodeLabels())
	s = fleet.InstanceSpec{ID: "a", Nodes: fleet.NodesMachine}
	require.Equal(t, map[string]string{fleet.LabelGroup: "a"}, s.NodeLabels())
	for mode, want := range map[fleet.NetworkMode]fleet.NetworkMode{"": fleet.NetworkGateway,
		fleet.NetworkExisting: fleet.NetworkExisting, fleet.NetworkNone: fleet.NetworkNone} {
		require.Equal(t, want, (&fleet.Network{Mode: mode}).ModeOrDefault())
	}
	require.Equal(t, fleet.NetworkGateway, (*fleet.Network)(nil).ModeOrDefault())
}

// Orphans have the same order for every caller: by provider, slices before other objects, and then by name.
func TestOrphansAreSorted(t *testing.T) {
	orphan := func(provider, instance, what string) fleet.Orphan {
		return fleet.Orphan{Object: what, Attempt: fleet.Attempt{Instance: instance, Provider: fleet.Provider{ID: provider}}}
	}
	ordered := []fleet.Orphan{orphan("milan", "a-t0-1", "x"), orphan("milan", "a-t0-1", "y"), orphan("milan", "", "a"),
		orphan("milan", "", "b"), orphan("turin", "a-t0-1", "a"), orphan("turin", "", "a")}
	for i, a := range ordered {
		for j, b := range ordered {
			require.Equal(t, i < j, a.Compare(b) < 0, "%d, %d", i, j)
			require.Equal(t, i > j, a.Compare(b) > 0, "%d, %d", i, j)
		}
	}
}

// An offer expires at its time, and so does a provider's refusal.
func TestOffersAndRefusalsExpire(t *testing.T) {
	for after, over := range map[time.Duration]bool{-1: false, 0: true, 1: true} {
		require.Equal(t, over, fleet.Offer{Expires: &t0}.Expired(t0.Add(after)))
		require.Equal(t, over, fleet.ProviderRefusal{Until: t0}.Over(t0.Add(after)))
	}
	require.False(t, fleet.Offer{}.Expired(t0))
	require.False(t, fleet.ProviderRefusal{}.Over(t0))
	require.False(t, fleet.ProviderSnapshot{Run: 7}.Over(7))
	require.True(t, fleet.ProviderSnapshot{Run: 7}.Over(6))
	require.Equal(t, t0, fleet.Earlier(time.Time{}, t0))
	require.Equal(t, t0, fleet.Earlier(t0, time.Time{}))
	require.Equal(t, t0, fleet.Earlier(t0, t0.Add(1)))
	require.Equal(t, t0, fleet.Earlier(t0.Add(1), t0))
}

// TestFormOfInstanceIDs checks the form of the ids, which become providerIDs. Cluster Autoscaler's provider gce removes
// six characters of a providerID and requires three parts; for any other form it returns an error (CA
// cloudprovider/gce/gce_url.go).
func TestFormOfInstanceIDs(t *testing.T) {
	for _, id := range []string{fleet.InstanceID("g", "g-a-1"),
		fleet.InstanceID("a-group", "a-group-tp6kjk-12")} {
		require.Len(t, strings.Split(id[len("gce://"):], "/"), 3, id)
		require.Regexp(t, `^liqo://[^/]+/[^/]+$`, id)
	}
}
