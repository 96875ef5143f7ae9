package grpcserver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// madeOfOffers treats all groups except cpu as derived from offers.
type madeOfOffers struct{}

func (madeOfOffers) Derives(group string) bool { return group != "cpu" }

func (madeOfOffers) Refused() map[string]string {
	return map[string]string{"l-rome": "its id is taken"}
}

// deriving is like reloading, with groups that are derived from offers.
func deriving(t *testing.T, g Groups, specs ...fleet.GroupSpec) (client, *Server, *fakeConfig) {
	t.Helper()
	config := &fakeConfig{}
	o := config.options(g, specs...)
	o.Derived = madeOfOffers{}
	s, err := New(o)
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	return newClient(t, s), s, config
}

// labelled returns the group of a provider, with the label region.
func labelled(region string, most int) fleet.GroupSpec {
	s := spec("l-milan", 0, most)
	s.Labels = map[string]string{"region": region}
	return s
}

// A label in the template of a derived group changes. The server retires the group, and starts a new group with the
// same id when the old group is empty.
func TestChangedTemplateReplacesADerivedGroup(t *testing.T) {
	f := newFake()
	c, s, config := deriving(t, f, spec("cpu", 0, 5), labelled("north", 5))
	require.NoError(t, c.increase("l-milan", 2))
	f.ready("l-milan", 2)
	require.NoError(t, c.refresh())
	epoch := func() (epoch string) {
		f.set(func(f *fakeGroups) { epoch = f.groups["l-milan"].ledger.Epoch })
		return epoch
	}
	first := epoch()

	config.write("v2", spec("cpu", 0, 5), labelled("south", 5))
	require.NoError(t, c.refresh())
	requireRetired(t, c, "l-milan", 2)
	require.Equal(t, "north", c.template("l-milan").Labels["region"], "as its nodes are")
	config.write("v3", spec("cpu", 0, 6), labelled("south", 7))
	require.NoError(t, c.refresh())
	requireRetired(t, c, "l-milan", 2)
	require.Equal(t, []string{"l-milan"}, retired(s))
	require.Empty(t, kept(s))
	has(t, scrape(t, NewMetrics(s)), `group_retired{group="l-milan"} 1`, `groups_not_derived 1`)

	require.NoError(t, c.remove("l-milan", c.ids("l-milan")...))
	f.drop("l-milan")
	require.NoError(t, c.refresh())
	require.Equal(t, []string{"l-milan"}, f.ended())
	require.NoError(t, c.refresh())
	require.Equal(t, "south", c.template("l-milan").Labels["region"])
	require.EqualValues(t, 7, c.groups()["l-milan"].GetMaxSize())
	require.NotEqual(t, first, epoch(), "another group")
	require.NoError(t, c.increase("l-milan", 1))
	require.Empty(t, retired(s))
}

// A group without instances is replaced immediately, even when it had instances before, because CA forgets a group that
// is not listed.
func TestChangedTemplateReplacesAnEmptyGroupImmediately(t *testing.T) {
	f := newFake()
	c, _, config := deriving(t, f, spec("cpu", 0, 5), labelled("north", 5))
	require.NoError(t, c.increase("l-milan", 1))
	require.NoError(t, c.remove("l-milan", c.ids("l-milan")...))
	f.drop("l-milan")
	require.NoError(t, c.refresh())
	config.write("v2", spec("cpu", 0, 5), labelled("south", 5))
	require.NoError(t, c.refresh())
	require.NotContains(t, c.groups(), "l-milan", "for one of CA's loops")
	require.NoError(t, c.refresh())
	require.Equal(t, "south", c.template("l-milan").Labels["region"])
	require.NoError(t, c.increase("l-milan", 1))
}

// When the label changes back, the retirement ends. When the offer disappears during the retirement, the group is not
// replaced.
func TestRevertedTemplateEndsTheRetirement(t *testing.T) {
	f := newFake()
	c, s, config := deriving(t, f, spec("cpu", 0, 5), labelled("north", 5))
	require.NoError(t, c.increase("l-milan", 1))
	change := func(version string, specs ...fleet.GroupSpec) {
		config.write(version, append(specs, spec("cpu", 0, 5))...)
		require.NoError(t, c.refresh())
	}
	change("v2", labelled("south", 5))
	requireRetired(t, c, "l-milan", 1)
	change("v3", labelled("north", 4))
	require.Empty(t, retired(s))
	require.EqualValues(t, 4, c.groups()["l-milan"].GetMaxSize())
	require.NoError(t, c.increase("l-milan", 1))

	change("v4", labelled("south", 5))
	change("v5")
	requireRetired(t, c, "l-milan", 2)
	require.NoError(t, c.remove("l-milan", c.ids("l-milan")...))
	f.drop("l-milan")
	require.NoError(t, c.refresh())
	require.NoError(t, c.refresh())
	require.NotContains(t, c.groups(), "l-milan")
}

// A label changes while no server runs. The server that starts replaces the group. It also serves the new group when
// another server has completed the replacement.
func TestChangedTemplateReplacesTheGroupAfterARestart(t *testing.T) {
	f := newFake()
	c, _, _ := deriving(t, f, spec("cpu", 0, 5), labelled("north", 5))
	require.NoError(t, c.increase("l-milan", 1))

	second, s, _ := deriving(t, f, spec("cpu", 0, 5), labelled("south", 5))
	requireRetired(t, second, "l-milan", 1)
	require.Equal(t, "north", second.template("l-milan").Labels["region"])
	third, other, _ := deriving(t, f, spec("cpu", 0, 5), labelled("south", 5))
	require.NoError(t, third.remove("l-milan", third.ids("l-milan")...))
	f.drop("l-milan")
	for range 2 {
		require.NoError(t, third.refresh())
	}
	require.Equal(t, "south", third.template("l-milan").Labels["region"])
	require.Empty(t, retired(other))
	require.NoError(t, third.increase("l-milan", 1))

	require.NoError(t, second.refresh())
	require.Empty(t, retired(s))
	require.Equal(t, "south", second.template("l-milan").Labels["region"])
	require.NoError(t, second.increase("l-milan", 1))
}
