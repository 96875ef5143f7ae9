package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/devserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// command runs the program with these arguments.
func command(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	var out, errOut testkit.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errOut)
	err = root.ExecuteContext(ctx)
	return out.String(), errOut.String(), err
}

// stage is a complete installation on this machine, as `make run` starts it. The test acts as CA.
type stage struct {
	t     *testing.T
	ctx   context.Context
	flags devRun
	ca    protos.CloudProviderClient
}

func newStage(t *testing.T) *stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none")) // not the user's market
	ports := testkit.FreePorts(t, 3)
	_, uiPort, err := net.SplitHostPort(ports[2])
	require.NoError(t, err)
	s := &stage{t: t, ctx: ctx}
	s.flags = devRun{dir: t.TempDir(), temporal: ports[0], listen: ports[1], uiPort: uiPort}
	conn, err := grpc.NewClient(s.flags.listen, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	s.ca = protos.NewCloudProviderClient(conn)
	return s
}

// cli runs a command against the stage's Temporal and returns its output.
func (s *stage) cli(args ...string) string {
	s.t.Helper()
	out, err := s.try(args...)
	require.NoError(s.t, err)
	return out
}

// try is like cli, but for a command that may fail.
func (s *stage) try(args ...string) (string, error) {
	out, errOut, err := command(s.ctx, append(args, "--hub", "edge", "--temporal-address", s.flags.temporal)...)
	if err == nil && errOut != "" {
		err = errors.New(errOut)
	}
	return out, err
}

func (s *stage) status(args ...string) show.Status {
	s.t.Helper()
	out, err := s.tryStatus(args...)
	require.NoError(s.t, err)
	return out
}

// tryStatus is like status, but may fail because not all groups have started yet.
func (s *stage) tryStatus(args ...string) (status show.Status, err error) {
	out, err := s.try(append([]string{"status", "-o", "json"}, args...)...)
	if err == nil {
		err = json.Unmarshal([]byte(out), &status)
	}
	return status, err
}

func (s *stage) refresh() {
	s.t.Helper()
	_, err := s.ca.Refresh(s.ctx, &protos.RefreshRequest{}, grpc.WaitForReady(true))
	require.NoError(s.t, err)
}

// increase acts as Cluster Autoscaler: it calls Refresh until this succeeds, and then requests nodes.
func (s *stage) increase(group string, delta int32) error {
	s.t.Helper()
	require.NoError(s.t, cli.WaitFor(s.ctx, time.Minute, func() error {
		_, err := s.ca.Refresh(s.ctx, &protos.RefreshRequest{})
		return err
	}))
	_, err := s.ca.NodeGroupIncreaseSize(s.ctx, &protos.NodeGroupIncreaseSizeRequest{Id: group, Delta: delta})
	return err
}

func (s *stage) groups() map[string]*protos.NodeGroup {
	s.t.Helper()
	resp, err := s.ca.NodeGroups(s.ctx, &protos.NodeGroupsRequest{})
	require.NoError(s.t, err)
	out := map[string]*protos.NodeGroup{}
	for _, g := range resp.GetNodeGroups() {
		out[g.GetId()] = g
	}
	return out
}

func (s *stage) configure(text string) {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(filepath.Join(s.flags.dir, "nodegroups.yaml"), []byte(text), 0o600))
}

// until waits until the condition want holds for the status.
func (s *stage) until(want func(show.Status) bool) show.Status {
	s.t.Helper()
	var last show.Status
	testkit.Until(s.t, 2*time.Minute, "status as wanted", func() error {
		var err error
		if last, err = s.tryStatus(); err == nil && !want(last) {
			err = fmt.Errorf("%+v", last)
		}
		return err
	})
	return last
}

const twoGroups = `
hub: edge
limits: {nodes: 4}
defaults: {max: 3, shape: {cpu: 2, memory: 4Gi, pods: 110}}
nodeGroups: [{id: one}, {id: two, groupTaint: NoSchedule}]
`

// An operator reads the state, watches changes, and changes the config, both while the processes run and while they
// are stopped.
func TestStatusOffersAndReload(t *testing.T) {
	testkit.Slow(t)
	s := newStage(t)
	s.configure(twoGroups)
	_, stop := startDev(s.ctx, t, s.flags)
	require.Equal(t, "No provider is known.\n", s.cli("offers"))
	s.until(func(st show.Status) bool { return len(st.Groups) == 2 }) // Temporal's index lags behind

	watched := s.watch()
	require.NoError(t, s.increase("two", 3))
	err := s.increase("one", 2)
	require.Equal(t, codes.OutOfRange, status.Code(err))
	require.ErrorContains(t, err, "limits.nodes is 4, 3 exist and 2 more are requested")
	require.EqualValues(t, 1, s.groups()["one"].GetMaxSize(), "as many as the limit leaves room for")
	ready := s.until(func(st show.Status) bool { return len(st.Groups) == 2 && st.Groups[1].Ready == 3 })
	require.Equal(t, "two", ready.Instances[0].Group)
	require.Len(t, s.status("--group", "one").Groups, 1)
	require.Len(t, s.status("--group", "t?o", "--phase", "ready").Instances, 3)
	require.Equal(t, "No node group has such an instance.\n", s.cli("status", "--provider", "nobody"))
	require.Regexp(t, `^NAME .*\ntwo .*\none `, s.cli("status", "--sort", "cost"))
	require.Regexp(t, `(?m)^two +AtMax +its target size 3 is its max$`, s.cli("status"))
	s.isUnknown("nope", "one, two")
	require.Regexp(t, `(?m)^two +0 +3 +3 +3 +0 +0 +0 +[0-9a-f]{12} +\d+s$`, s.cli("status"))
	var lent show.Offers
	require.NoError(t, json.Unmarshal([]byte(s.cli("offers", "-o", "json")), &lent))
	require.Equal(t, 3, lent.Offers[0].HeldNodes)
	require.Equal(t, fleet.Established, lent.Offers[0].Peering)

	require.Regexp(t, `(?m)^two +two +\S+ +\d+\.\d\d USD +0\.\d\d USD$`, s.cli("report"),
		"three nodes at what the example's offers ask")
	require.Regexp(t, `(?m)^two has data since \d{4}-\d\d-\d\dT\S+Z$`, s.cli("report", "--group", "two"))
	require.Contains(t, s.cli("report", "-o", "csv"), "date,group,account,provider,currency,cost\n")
	require.Equal(t, 3, strings.Count(s.cli("report", "-o", "opencost-csv"), ",,node,spec.providerID,lca-two-"))
	require.Regexp(t, `(?m)^COST OF +PROVIDER`, s.cli("status", "-o", "wide"))

	s.relabel(ready.Instances[0].Node)
	explained := s.cli("explain", "instance", ready.Instances[0].Name)
	require.Contains(t, explained, "instance "+ready.Instances[0].Name+": Ready, attempt 1 on ")
	require.Contains(t, explained, ": the node is Ready\n")
	for _, name := range []string{ready.Instances[0].Name, ready.Instances[0].Node, ready.Instances[0].ID} {
		require.Equal(t, explained, s.cli("explain", "instance", name))
		require.Equal(t, explained, s.cli("explain", name), "the command finds out what is named")
	}
	decided := s.cli("explain", "group", "two")
	require.Equal(t, decided, s.cli("explain", "two"))
	require.Contains(t, s.cli("explain", "two", "-o", "json"), `"choices": [`)
	require.Regexp(t, `^node group two: the last \d+ decisions, since \S+Z\n`, decided)
	require.Regexp(t, `(?m)^  \S+Z  `+ready.Instances[0].Name+`, attempt 1: \S+: fits at price \S+ USD$`, decided)
	require.Contains(t, s.cli("explain", "group", "two", "-o", "json"), `"choices": [`)
	require.Equal(t, "node group one has no recorded decision\n", s.cli("explain", "group", "one"))
	_, _, err = command(s.ctx, "explain", "instance", "two-x-9", "--hub", "edge", "--temporal-address",
		s.flags.temporal)
	require.ErrorContains(t, err, "no instance two-x-9: no node group of hub edge lists it")

	doctored := s.cli("doctor", "--no-cluster", "--market-file", filepath.Join(s.flags.dir, "market.json"))
	require.Regexp(t, `(?m)^examined: Temporal \S+, 2 node groups, \d providers$`, doctored)
	require.Contains(t, doctored, "examined: 3 offers\nno fault was found\n")

	var all show.Offers
	require.NoError(t, json.Unmarshal([]byte(s.cli("offers", "-o", "json", "--market-file",
		filepath.Join(s.flags.dir, "market.json"))), &all))
	require.Len(t, all.Offers, 3, "also the unused offers")
	require.True(t, *all.Offers[0].Current)

	require.Equal(t, "node group one is paused, target size 0\n", s.cli("pause", "group", "one"))
	require.Regexp(t, `(?m)^one +Paused +it is paused: liqo-autoscaler resume group one$`, s.cli("status", "-o", "wide"))
	s.refresh()
	require.Zero(t, s.groups()["one"].GetMaxSize(), "a paused group cannot grow")
	require.Equal(t, codes.OutOfRange, status.Code(s.increase("one", 1)))
	require.Equal(t, "node group one is not paused, target size 0\n", s.cli("resume", "group", "one"))
	s.refresh()
	require.EqualValues(t, 1, s.groups()["one"].GetMaxSize())

	held := lent.Offers[0].Provider
	for line, want := range map[string]string{
		"pause ": "group\nobserver\n", "resume group ": "one\ntwo\n", "cordon ": "provider\n",
		"cordon provider ": held + "\n", "status --group ": "one\ntwo\n", "explain group ": "one\ntwo\n",
		"status --sort c": "activity\nname\nphase\nage\nprovider\ncost\n", "pause group one ": "", "pause observer ": "",
		"offers repin ": held + "\n", "offers repin " + held + " ": "", "demo --group ": "one\ntwo\n",
		"explain group one ": "", "status -o w": "table\nwide\njson\nyaml\n",
	} {
		words := strings.Split("__complete --hub edge --temporal-address "+s.flags.temporal+" "+line, " ")
		out, _, err := command(s.ctx, words...)
		require.NoError(t, err)
		require.Equal(t, want+":4\n", out, "%s, without names of files", line)
	}
	out, _, err := command(s.ctx, "__complete", "dev", "heal", "--dir", s.flags.dir, "")
	require.NoError(t, err)
	require.Equal(t, "genoa\nmilan\nturin\n:4\n", out)
	out, _, err = command(s.ctx, "__complete", "offers", "add", "")
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(out, "\n:4\n"), "a command without flags for Temporal: %s", out)
	require.Regexp(t, `(?m) CURRENT$[^$]*`+held+` .* unknown$`, s.cli("offers"))
	require.Equal(t, "provider "+held+" is cordoned, 3 held, peering Established\n", s.cli("cordon", "provider", held))
	require.Contains(t, s.cli("offers"), "Established,Cordoned")
	require.Regexp(t, held+` +Cordoned +\d+s +by an operator`, s.cli("status"))
	require.Contains(t, s.cli("uncordon", "provider", lent.Offers[0].Name), "provider "+held+" is not cordoned, ")
	require.Equal(t, "provider nobody is cordoned, 0 held, peering Absent\n",
		s.cli("cordon", "provider", "nobody", "--unknown"))
	for _, provider := range []string{held, "nobody"} {
		require.Contains(t, s.cli("uncordon", "provider", provider), "provider "+provider+" is not cordoned, ")
	}
	require.NotContains(t, s.cli("offers")+s.cli("status"), "Cordoned")

	// The group is removed from the config while no server runs. The next server finds the running group, which can
	// then only shrink. After its last instance is removed, the group ends.
	stop()
	s.configure(strings.Replace(twoGroups, ", {id: two, groupTaint: NoSchedule}", "", 1))
	_, stop = startDev(s.ctx, t, s.flags)
	s.refresh()
	require.EqualValues(t, 3, s.groups()["two"].GetMaxSize())
	require.Equal(t, codes.FailedPrecondition, status.Code(s.increase("two", 1)))
	require.Regexp(t, `(?m)^two +Retired +it is no longer in the config: it only shrinks`, s.cli("status"))
	remove := &protos.NodeGroupDeleteNodesRequest{Id: "two"}
	for _, i := range ready.Instances {
		remove.Nodes = append(remove.Nodes, &protos.ExternalGrpcNode{Name: i.Node, ProviderID: i.ID})
	}
	_, err = s.ca.NodeGroupDeleteNodes(s.ctx, remove)
	require.NoError(t, err)
	s.until(func(st show.Status) bool { return len(st.Instances) == 0 })
	s.refresh()
	require.NotContains(t, s.groups(), "two")
	s.until(func(st show.Status) bool { return len(st.Groups) == 1 })

	// While all processes run, the group is added to the config again, with another shape. Before that, the config
	// file is broken for a time.
	s.configure("nodeGroups: [{}]")
	s.refresh()
	require.Len(t, s.groups(), 1)
	s.configure(strings.Replace(twoGroups, "cpu: 2", "cpu: 1", 1))
	s.refresh()
	require.Len(t, s.groups(), 2)
	require.NoError(t, s.increase("two", 1))
	st := s.until(func(st show.Status) bool { return len(st.Instances) == 1 && st.Instances[0].Phase == fleet.Ready })
	require.Equal(t, "1", st.Groups[1].Shape.Cpu().String())

	// The config changes the shape of a group that has nodes. The change does not take effect, and status and doctor
	// report this.
	s.configure(twoGroups)
	s.refresh()
	require.Regexp(t, `(?m)^two +ChangeNotInForce +shape changed, but only in the config: give the changed group a new id`,
		s.cli("status"))
	require.Regexp(t, `(?m)^warning: node group two: shape changed`, s.cli("doctor", "--no-cluster", "--market-file",
		filepath.Join(s.flags.dir, "market.json")))
	require.Equal(t, "1", s.status("--group", "two").Groups[0].Shape.Cpu().String())
	s.configure(strings.Replace(twoGroups, "cpu: 2", "cpu: 1", 1))
	s.refresh()
	require.NotContains(t, s.cli("status"), "ChangeNotInForce")

	// Temporal has deleted the histories of closed workflows. A released instance is then unknown. For a Ready
	// instance, only the state that its group publishes is known.
	was, is := ready.Instances[0].Name, st.Instances[0].Name
	temporal := devserver.Dial(t, s.flags.temporal)
	for _, id := range []string{workflows.ScaleOutID(was), workflows.ScaleInID(was), workflows.ScaleOutID(is)} {
		devserver.Forget(t, temporal, workflows.Hub("edge").ID(id))
	}
	_, err = s.try("explain", "instance", was)
	require.ErrorContains(t, err, "Temporal has no history of it (any more)")
	require.Regexp(t, `(?s)^instance `+is+`: Ready, attempt 1 on .*Temporal has no history of it\nnot considered: `+
		`Cluster Autoscaler's events about [^\n]*\n$`,
		s.cli("explain", "instance", is, "--kubeconfig", filepath.Join(t.TempDir(), "none")))
	require.Equal(t, is, s.status().Instances[0].Name)

	// During these steps the watch has printed every published phase of the first instance.
	for _, phase := range []fleet.Phase{fleet.Discovering, fleet.Peering, fleet.Ready, fleet.Draining, fleet.Released} {
		require.Contains(t, watched(), phase)
	}
	stop()
}

// isUnknown requires that every command that accepts the id of a node group reports this id as unknown and lists the
// known ids.
func (s *stage) isUnknown(id, those string) {
	s.t.Helper()
	for _, args := range [][]string{{"status", "--group", id}, {"report", "--group", id}, {"explain", "group", id},
		{"pause", "group", id}, {"resume", "group", id}} {
		_, err := s.try(args...)
		require.ErrorContains(s.t, err, "there is no node group "+id+" in hub edge, which has "+those, args)
		require.NotContains(s.t, err.Error(), "unavailable", args)
		require.Equal(s.t, 1, connect.ExitCode(err), args)
	}
}

// relabel changes a label of a node, as a user might do, and restores it. In between it checks that status shows the
// difference.
func (s *stage) relabel(node string) {
	s.t.Helper()
	world, err := sim.Open(filepath.Join(s.flags.dir, "world.json"))
	require.NoError(s.t, err)
	published := filepath.Join(s.flags.dir, "market.json")
	for _, c := range []struct {
		arch string
		want []market.DifferentNode
	}{
		{"arm64", []market.DifferentNode{{Node: node, Group: "two",
			Differs: "label kubernetes.io/arch is arm64 instead of amd64"}}},
		{"amd64", nil},
	} {
		require.NoError(s.t, world.Edit(s.ctx, func(w *sim.State) error {
			w.Consumer.Nodes[node].Labels["kubernetes.io/arch"] = c.arch
			return nil
		}))
		testkit.Until(s.t, 2*time.Minute, "status shows how the node differs", func() error {
			status, err := s.tryStatus("--market-file", published)
			if err == nil && !slices.Equal(c.want, status.Findings.Nodes) {
				err = fmt.Errorf("%+v", status.Findings)
			}
			return err
		})
	}
	require.Empty(s.t, s.status("--group", "one", "--market-file", published).Findings.Nodes)
	whole := regexp.MustCompile(`(?m)^OBSERVER +LAST ROUND +UNREAD +WHY\nrunning +\d+s +0 `)
	testkit.Until(s.t, 2*time.Minute, "a round that has read all, also what was just started", func() error {
		if shown := s.cli("status", "--market-file", published); !whole.MatchString(shown) {
			return errors.New(shown)
		}
		return nil
	})
}

// The creation of an instance takes long. status shows the reason.
func TestStatusShowsTheCauseOfAWait(t *testing.T) {
	testkit.Slow(t)
	s := newStage(t)
	s.configure(twoGroups)
	_, stop := startDev(s.ctx, t, s.flags)
	world, err := sim.Open(filepath.Join(s.flags.dir, "world.json"))
	require.NoError(t, err)
	knobs := func(k sim.Knobs) {
		for _, provider := range []string{"milan", "turin", "genoa"} {
			require.NoError(t, world.SetKnobs(s.ctx, provider, k))
		}
	}
	waits := func(what string) {
		s.until(func(st show.Status) bool {
			return len(st.Instances) == 1 && strings.Contains(st.Instances[0].Why(), what)
		})
	}
	knobs(sim.Knobs{Hang: backend.StageTenant})
	require.NoError(t, s.increase("one", 1))
	waits("waiting for tenant: ")

	// The instance has no grant yet. A pause makes it fail immediately, and Cluster Autoscaler deletes it.
	require.Equal(t, "node group one is paused, target size 1\n", s.cli("pause", "group", "one"))
	paused := s.until(func(st show.Status) bool { return len(st.Instances) == 1 && st.Instances[0].Phase == fleet.Failed })
	require.Equal(t, fleet.CodePaused, paused.Instances[0].Failure.Code)
	require.Equal(t, codes.OutOfRange, status.Code(s.increase("one", 1)))
	id := paused.Instances[0].ID
	_, err = s.ca.NodeGroupDeleteNodes(s.ctx, &protos.NodeGroupDeleteNodesRequest{Id: "one",
		Nodes: []*protos.ExternalGrpcNode{{Name: id, ProviderID: id}}})
	require.NoError(t, err)
	s.until(func(st show.Status) bool { return len(st.Instances) == 0 })
	s.cli("resume", "group", "one")
	require.NoError(t, s.increase("one", 1))
	waits("waiting for tenant: ")

	knobs(sim.Knobs{Hang: backend.StageVirtualKubelet})
	waits("waiting for virtual-kubelet: ")
	require.Equal(t, fleet.Joining, s.status().Instances[0].Phase)
	s.until(func(st show.Status) bool { // explain shows the same cause
		said := s.cli("explain", "instance", st.Instances[0].Name)
		return strings.Contains(said, "Joining, attempt 1 on "+st.Instances[0].Provider+", waiting for virtual-kubelet: ")
	})
	knobs(sim.Knobs{})
	st := s.until(func(st show.Status) bool { return len(st.Instances) == 1 && st.Instances[0].Phase == fleet.Ready })
	require.Empty(t, st.Instances[0].Why())
	stop()
}

// watch returns the phases of the first instance that `status --watch` has printed so far.
func (s *stage) watch() func() []fleet.Phase {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	in, out := io.Pipe()
	root := newRoot()
	root.SetArgs([]string{"status", "--watch", "-o", "json", "--hub", "edge", "--temporal-address", s.flags.temporal})
	root.SetOut(out)
	root.SetErr(io.Discard)
	done := make(chan error, 1)
	go func() {
		done <- root.ExecuteContext(ctx)
		out.Close()
	}()
	phases := make(chan []fleet.Phase, 1)
	phases <- nil
	go func() {
		first := ""
		for lines := bufio.NewScanner(in); lines.Scan(); {
			var change show.Change
			if json.Unmarshal(lines.Bytes(), &change) != nil || change.Name == "" || first != "" && change.Name != first {
				continue
			}
			first = change.Name
			phases <- append(<-phases, change.Phase)
		}
	}()
	s.t.Cleanup(func() {
		cancel()
		require.NoError(s.t, <-done)
	})
	return func() []fleet.Phase {
		seen := <-phases
		phases <- seen
		return seen
	}
}

// `pause` refuses every argument other than `group` with a name, or `observer`.
func TestPauseNeedsAGroup(t *testing.T) {
	for _, args := range [][]string{{}, {"standard"}, {"provider", "milan"}, {"group"}, {"group", "a", "b"},
		{"observer", "a"}} {
		_, _, err := command(t.Context(), append([]string{"pause"}, args...)...)
		require.EqualError(t, err,
			"want `group` and the id of a node group, or `observer`, as in \"liqo-autoscaler pause group standard\"")
	}
}

func TestCordonNeedsAProvider(t *testing.T) {
	for _, args := range [][]string{{}, {"milan"}, {"group", "standard"}, {"provider"}, {"provider", "a", "b"}} {
		_, _, err := command(t.Context(), append([]string{"uncordon"}, args...)...)
		require.EqualError(t, err,
			"want `provider` and its Liqo cluster id, or the name of its offer, as in \"liqo-autoscaler uncordon provider milan\"")
	}
	_, _, err := command(t.Context(), "cordon", "provider", "a/b")
	require.ErrorContains(t, err, `"a/b" is neither a Liqo cluster id nor the name of an offer`)
}

func TestStatusReportsItsErrors(t *testing.T) {
	_, _, err := command(t.Context(), "status", "-o", "xml")
	require.EqualError(t, err, `--output "xml": use table, wide, json, yaml`)
	_, _, err = command(t.Context(), "status", "--watch", "-o", "yaml")
	require.ErrorContains(t, err, "use another --output")

	ports := testkit.FreePorts(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, _, err := command(ctx, "status", "--temporal-address", ports[0])
	require.ErrorContains(t, err, "no process listens at Temporal's address "+ports[0])
	require.NoError(t, ctx.Err(), "it does not wait")
	require.Empty(t, out)
}
