package chaos

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

var soaked = flag.Int("soak", 0, "simulated hours of the soak; 0: TestSoak is skipped")

// In each hour CA and the monkey work for some seconds. Then the processes settle as far as possible, and the rest of
// the hour passes. The first hour begins when all processes run.
const (
	awake  = 20 * time.Second
	busy   = 14 * time.Second
	asleep = 4 * time.Second
	starts = time.Minute
	rounds = 5 * time.Second // interval of the observer's rounds
	// warm is the hour after which the test first measures sizes. Workers are upgraded only in the first half of the day,
	// so that the last workers become as old as possible.
	warm = 2
	// upgradeEvery is the number of hours between two upgrades.
	upgradeEvery = 3
)

// deployment is the name of the Worker Deployment.
const deployment = "soak"

// TestSoak runs a day with failures, reloads and upgrades. Workflows use a calendar in which each hour takes some
// seconds. Every answer to CA stays true. Memory, histories and memos do not grow from hour to hour.
func TestSoak(t *testing.T) {
	if *soaked <= 0 {
		t.Skip("run make chaos SUITE=soak")
	}
	days := &calendar{Began: time.Now().Add(starts).UTC(), Awake: awake, Asleep: asleep, Hours: *soaked}
	ctx, cancel := context.WithDeadline(context.Background(), days.hour(*soaked).Add(4*restLimit))
	defer cancel()
	s := newSoak(ctx, t, drawn(), days)
	for hour := range *soaked {
		s.hour(ctx, hour)
		if hour == warm {
			s.start = s.sizes(ctx)
		}
		if len(s.m.verdict()) > 0 {
			break
		}
	}
	s.quiet(ctx, true)
	end := s.sizes(ctx)
	s.m.bounded(s.start, end)
	s.end(ctx, fmt.Sprintf("SOAK hours=%d %s rss=%s history=%s memo=%s", *soaked, s.tell(ctx), end.rss(s.start),
		end.history(s.start), end.memos(s.start)))
}

// soak holds one run.
type soak struct {
	*run
	days              *calendar
	monkey            *monkey
	temporal          string // address of Temporal
	start             sizes
	build             int  // build of the workers
	green             bool // whether the config has the group green
	reloads, upgrades int
}

// soaking is the layout of the soak. The test writes the groups and offers again from time to time.
var soaking = layout{groups: groupsAt(0), most: map[string]int{"red": 4, "blue": 4, "green": 2},
	providers: cramped.providers, delays: cramped.delays}

// groupsAt returns the config for the given hour of the test. The max of the group blue changes, and the group green
// exists half of the time.
func groupsAt(hour int) string {
	text := strings.Replace(cramped.groups, "{id: blue, min: 0, max: 3}",
		fmt.Sprintf("{id: blue, min: 0, max: %d, budgets: {drain: %ds}}", 3+hour%2, 5+hour%3), 1)
	if greenAt(hour) {
		text += "- {id: green, min: 0, max: 2}\n"
	}
	return text
}

func greenAt(hour int) bool { return hour%4 == 1 || hour%4 == 2 }

// newSoak starts all processes and returns when nothing changes any more.
func newSoak(ctx context.Context, t *testing.T, seed uint64, days *calendar) *soak {
	t.Helper()
	dir := place(t)
	t.Logf("seed %d, to be had again with: make chaos SUITE=soak SEED=%d; remains of a failure: %s", seed, seed, dir)
	ports := testkit.FreePorts(t, 3)
	st := &stack{dir: dir, groups: soaking.most, least: map[string]int{"blue": 3, "green": 0}, addresses: ports[1:],
		namespace: client.DefaultNamespace, temporal: temporalAt(t, ports[0], dir)}
	st.replays.Interceptors = []interceptor.WorkerInterceptor{days}
	st.files(t, soaking)
	startAll(t, st.temporal)
	st.connect(ctx, t, ports[0])
	s := &soak{days: days, temporal: ports[0]}
	for n, address := range st.addresses {
		st.servers = append(st.servers, st.child(roleServer, fmt.Sprint("grpcserver", n), ports[0], envListen+"="+address))
	}
	startAll(t, st.servers...)
	s.run = &run{t: t, s: st}
	s.work(ctx)
	s.run = runOn(ctx, t, seed, st)
	s.m.groups["blue"].least = 3
	s.m.hours = true
	s.d.also = s.wishes
	s.monkey = &monkey{s: st, rng: rand.New(rand.NewPCG(seed, 2)), m: s.m, versioned: true}
	require.True(t, wait.For(ctx, time.Until(days.hour(0))))
	return s
}

// work starts workers of the next build and makes that build the current one. It returns the workers of the previous
// build.
func (s *soak) work(ctx context.Context) (before []*process) {
	s.t.Helper()
	before = s.s.workers
	s.build++
	build := fmt.Sprint("build", s.build)
	s.s.workers = nil
	for n := range 2 {
		s.s.workers = append(s.s.workers, s.s.child(roleWorker, fmt.Sprintf("%s-worker%d", build, n), s.temporal,
			envCalendar+"="+s.days.String(), envBuild+"="+build, envRounds+"="+rounds.String()))
	}
	startAll(s.t, s.s.workers...)
	handle := s.s.api.WorkerDeploymentClient().GetHandle(deployment)
	require.NoError(s.t, until(ctx, restLimit, func() error {
		v, err := handle.DescribeVersion(ctx, client.WorkerDeploymentDescribeVersionOptions{BuildID: build})
		if err != nil {
			return err
		}
		queues := map[string]bool{}
		for _, q := range v.Info.TaskQueuesInfos {
			queues[q.Name] = true
		}
		if len(queues) < len(workflows.Lanes) {
			return fmt.Errorf("it polls %v", queues)
		}
		_, err = handle.SetCurrentVersion(ctx, client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build})
		return err
	}), "%s becomes the current one", build)
	return before
}

// hour runs one hour of the day: it changes the config, may upgrade the workers, and then causes faults.
func (s *soak) hour(ctx context.Context, hour int) {
	s.t.Helper()
	s.m.note("test", "hour %d", hour)
	s.reload(hour)
	var old []*process
	if hour > 0 && hour%upgradeEvery == 0 && hour <= *soaked/2 {
		s.upgrades++
		if old = s.work(ctx); s.upgrades%2 == 0 { // kill the old workers; other upgrades end them after the hour
			for _, p := range old {
				p.kill()
			}
			old = nil
		}
		s.m.note("test", "build %d is current", s.build)
	}
	s.monkey.spared = append(s.s.servers[:1:1], s.s.workers[0])
	play(ctx, s.d, s.monkey, min(busy, time.Until(s.days.hour(hour).Add(awake))))
	for _, p := range old {
		p.leave(restLimit)
	}
	require.True(s.t, wait.For(ctx, time.Until(s.days.hour(hour+1))))
}

// reload writes the files of an hour: the node groups, and the providers' offers.
func (s *soak) reload(hour int) {
	s.t.Helper()
	if s.green && !greenAt(hour) {
		s.m.ending("green") // the workflow of green ends when green is empty, and may begin a new epoch later
	}
	s.green = greenAt(hour)
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, "nodegroups.yaml"), []byte(groupsAt(hour)), 0o600))
	var offers strings.Builder
	offers.WriteString("offers:\n")
	for n, p := range soaking.providers {
		if n == hour%6 { // in half of the hours one provider offers nothing
			continue
		}
		fmt.Fprintf(&offers, "- {name: %s, credentials: {kubeconfigFile: %s.kubeconfig}, maxNodes: %d, %s}\n", p.Name, p.Name,
			2+(hour+n)%3, p.Offer)
	}
	require.NoError(s.t, os.WriteFile(s.s.world.Offers(), []byte(offers.String()), 0o600))
	s.reloads++
}

// wishes makes CA grow the group green while the config contains it. Otherwise CA releases the instances of this
// group.
func (s *soak) wishes(seen map[string]listing) []op {
	v, ok := seen["green"]
	switch {
	case !ok:
		return nil
	case !s.green:
		return asked(map[string]listing{"green": v}, func(i listed) bool { return i.counts })
	case v.target == 0:
		return []op{{group: "green", kind: "grow", delta: 1}}
	}
	return asked(map[string]listing{"green": v}, func(i listed) bool { return i.failed })
}

// tell returns the results of the soak as text.
func (s *soak) tell(ctx context.Context) string {
	s.t.Helper()
	all, err := s.s.listAll(ctx)
	require.NoError(s.t, err)
	kinds := map[string]int{}
	for _, w := range all {
		kinds[w.GetType().GetName()]++
	}
	s.m.mu.Lock()
	did := maps.Clone(s.m.counts)
	s.m.mu.Unlock()
	return fmt.Sprintf("scale-outs=%d scale-ins=%d failures=%d reloads=%d upgrades=%d kills=%d",
		kinds[workflows.TypeScaleOut], kinds[workflows.TypeScaleIn], did["monkey"]-did["kills"], s.reloads, s.upgrades,
		did["kills"])
}
