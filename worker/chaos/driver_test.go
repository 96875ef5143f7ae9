package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

const (
	caTimeout = 5 * time.Second  // CA's grpc_timeout
	readLimit = 15 * time.Second // a read comes from memory; the limit is for a busy machine
)

// driver acts as CA. In each loop it calls Refresh, reads, and then makes mutations. Several mutations run
// concurrently, like CA's deletions.
type driver struct {
	s      *stack
	m      *model
	rng    *rand.Rand
	conns  []protos.CloudProviderClient
	active int
	also   func(map[string]listing) []op // mutations in addition to the random mutations
	// pictures holds the groups that a replica has listed since its process started. The replica must list them until the
	// process ends (invariant I6).
	pictures map[int]pictures
}

type pictures struct {
	life   int
	groups map[string]bool
}

func newDriver(s *stack, m *model, rng *rand.Rand) (*driver, func(), error) {
	d := &driver{s: s, m: m, rng: rng, pictures: map[int]pictures{}}
	var conns []*grpc.ClientConn
	for _, address := range s.addresses {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5,
					MaxDelay: 300 * time.Millisecond},
				MinConnectTimeout: time.Second,
			}))
		if err != nil {
			return nil, nil, err
		}
		conns = append(conns, conn)
		d.conns = append(d.conns, protos.NewCloudProviderClient(conn))
	}
	return d, func() {
		for _, c := range conns {
			c.Close()
		}
	}, nil
}

// run loops until the context ends.
func (d *driver) run(ctx context.Context) {
	for wait.For(ctx, time.Duration(100+d.rng.IntN(300))*time.Millisecond) {
		d.loop(ctx, d.decide)
	}
}

// loop runs one loop of CA on the active replica. decide returns the mutations that follow from the listings. loop
// returns the last listings, or nil when the loop ended early.
func (d *driver) loop(ctx context.Context, decide func(map[string]listing) []op) map[string]listing {
	d.m.add("loops")
	n := d.active
	life := d.s.servers[n].lives()
	if !d.refresh(ctx, n) {
		if d.rng.IntN(3) == 0 {
			d.active = d.other(n)
		}
		return nil
	}
	seen := d.look(ctx, n, life, true)
	if seen == nil {
		return nil
	}
	ops := decide(seen)
	if len(ops) > 0 {
		var all sync.WaitGroup
		for _, o := range ops {
			o.server, o.life = n, life
			all.Go(func() { d.mutate(ctx, o) })
		}
		all.Wait()
		seen = d.look(ctx, n, life, false)
	}
	if other := d.other(n); d.rng.IntN(5) == 0 {
		if life := d.s.servers[other].lives(); d.refresh(ctx, other) {
			d.look(ctx, other, life, true)
		}
	}
	return seen
}

// The method `other` returns the index of the server that is not n. When only one server exists, the result is the
// index of this server.
func (d *driver) other(n int) int { return len(d.conns) - 1 - n }

// refresh calls Refresh, the only call that may fail for lack of data.
func (d *driver) refresh(ctx context.Context, n int) bool {
	ctx, cancel := context.WithTimeout(ctx, caTimeout)
	defer cancel()
	_, err := d.conns[n].Refresh(ctx, &protos.RefreshRequest{})
	switch status.Code(err) {
	case codes.OK:
		return true
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		d.m.note("driver", "refresh on server%d: %s", n, brief(err))
	default:
		d.m.violate("I6: Refresh on server%d ends with %v", n, err)
	}
	d.m.add("refresh failed")
	return false
}

var asOf = regexp.MustCompile(`^target (\d+) .* as of ([0-9a-z]+)/(\d+)`)

// look reads the complete state of a replica at one moment and checks it against the model. It returns nil when the
// replica died during the reads.
func (d *driver) look(ctx context.Context, n, life int, settled bool) map[string]listing {
	for range 20 {
		before, err := d.states(ctx, n)
		var seen map[string]listing
		if err == nil {
			seen, err = d.read(ctx, n, before)
		}
		if err == nil {
			err = d.keeps(n, life, before)
		}
		var after map[string]listing
		if err == nil {
			after, err = d.states(ctx, n)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && d.s.servers[n].lives() != life:
			return nil // it was killed
		case err != nil:
			d.m.violate("I6: a read on server%d fails: %v", n, err)
			return nil
		}
		same := true
		for id, v := range before {
			same = same && after[id].epoch == v.epoch && after[id].seq == v.seq
		}
		if !same {
			continue // the replica has received newer data between the reads
		}
		for _, id := range slices.Sorted(maps.Keys(seen)) {
			d.m.see(seen[id], n, life, settled)
		}
		d.m.add("looks")
		return seen
	}
	d.m.violate("server%d: 20 looks in a row, and each time it has changed meanwhile", n)
	return nil
}

// states reads the groups and the age of the replica's data about each group.
func (d *driver) states(ctx context.Context, n int) (map[string]listing, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	resp, err := d.conns[n].NodeGroups(ctx, &protos.NodeGroupsRequest{})
	if err != nil {
		return nil, err
	}
	out := map[string]listing{}
	for _, g := range resp.GetNodeGroups() {
		found := asOf.FindStringSubmatch(g.GetDebug())
		if found == nil {
			return nil, fmt.Errorf("group %s says %q", g.GetId(), g.GetDebug())
		}
		target, _ := strconv.Atoi(found[1])
		// The replica serves an unreadable group from its last data, and such a group cannot grow.
		most := int(g.GetMaxSize())
		if least, changes := d.s.least[g.GetId()]; most != target && most != d.s.groups[g.GetId()] &&
			(!changes || most != least) {
			return nil, fmt.Errorf("group %s has max %d, its target is %d", g.GetId(), most, target)
		}
		seq, _ := strconv.ParseInt(found[3], 10, 64)
		out[g.GetId()] = listing{group: g.GetId(), epoch: found[2], seq: seq, target: target, closed: most == target}
	}
	return out, nil
}

// keeps records the groups that a replica lists. From the time at which a replica first has data about a group, it
// must list the group until its process ends.
func (d *driver) keeps(n, life int, seen map[string]listing) error {
	p := d.pictures[n]
	if p.life != life || p.groups == nil {
		p = pictures{life: life, groups: map[string]bool{}}
	}
	for id := range seen {
		p.groups[id] = true
	}
	d.pictures[n] = p
	for id := range p.groups {
		if least, changes := d.s.least[id]; changes && least == 0 {
			continue
		}
		if _, ok := seen[id]; !ok {
			return fmt.Errorf("group %s is listed no longer", id)
		}
	}
	return nil
}

func (d *driver) read(ctx context.Context, n int, states map[string]listing) (map[string]listing, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	c, out := d.conns[n], map[string]listing{}
	for id, v := range states {
		target, err := c.NodeGroupTargetSize(ctx, &protos.NodeGroupTargetSizeRequest{Id: id})
		if err != nil {
			return nil, err
		}
		v.target = int(target.GetTargetSize())
		nodes, err := c.NodeGroupNodes(ctx, &protos.NodeGroupNodesRequest{Id: id})
		if err != nil {
			return nil, err
		}
		for _, i := range nodes.GetInstances() {
			group, name, ok := fleet.ParseInstanceID(i.GetId())
			if !ok || group != id {
				return nil, fmt.Errorf("group %s lists %q", id, i.GetId())
			}
			state := i.GetStatus().GetInstanceState()
			l := listed{
				name: name, counts: state != protos.InstanceStatus_instanceDeleting,
				running: state == protos.InstanceStatus_instanceRunning,
				failed:  i.GetStatus().GetErrorInfo().GetErrorCode() != "",
			}
			v.list = append(v.list, l)
			node, err := c.NodeGroupForNode(ctx, &protos.NodeGroupForNodeRequest{Node: &protos.ExternalGrpcNode{Name: name +
				"-1", ProviderID: i.GetId()}})
			if err != nil {
				return nil, err
			}
			if want := map[bool]string{true: id, false: ""}[l.counts]; node.GetNodeGroup().GetId() != want {
				// the data may have changed between the two calls; look detects this
				if again, err := d.states(ctx, n); err == nil && again[id].seq == v.seq && again[id].epoch == v.epoch {
					return nil, fmt.Errorf("I5: %s counts: %t, its group is %q", name, l.counts, node.GetNodeGroup().GetId())
				}
			}
		}
		out[id] = v
	}
	return out, nil
}

// mutate makes one call with CA's deadline and reports the outcome to the model.
func (d *driver) mutate(ctx context.Context, o op) {
	d.m.mu.Lock()
	o.epoch, o.ups = d.m.groups[o.group].epoch, d.m.ups
	d.m.mu.Unlock()
	deadline := time.Now().Add(caTimeout)
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline) // CA does not hang up
	defer cancel()
	c := d.conns[o.server]
	var err error
	switch o.kind {
	case "grow":
		_, err = c.NodeGroupIncreaseSize(ctx, &protos.NodeGroupIncreaseSizeRequest{Id: o.group, Delta: int32(o.delta)})
	case "shrink":
		_, err = c.NodeGroupDecreaseTargetSize(ctx, &protos.NodeGroupDecreaseTargetSizeRequest{Id: o.group,
			Delta: -int32(o.delta)})
	default:
		req := &protos.NodeGroupDeleteNodesRequest{Id: o.group}
		for _, name := range o.names {
			req.Nodes = append(req.Nodes, &protos.ExternalGrpcNode{Name: name, ProviderID: fleet.InstanceID(o.group, name)})
		}
		_, err = c.NodeGroupDeleteNodes(ctx, req)
	}
	d.m.note("driver", "server%d %s %s %d%v: %s", o.server, o.kind, o.group, o.delta, o.names, brief(err))
	code := status.Code(err)
	switch {
	case code == codes.OK:
		d.m.add(o.kind)
		d.m.did(o, true, deadline)
	case code == codes.Unavailable, code == codes.DeadlineExceeded:
		d.m.add("unknown")
		d.m.did(o, false, deadline)
	case code == codes.OutOfRange && o.kind == "grow" && !o.room, code == codes.FailedPrecondition && o.kind == "shrink":
		d.m.add("no")
	default:
		d.m.violate("%s of %s on server%d ends with %v", o.kind, o.group, o.server, err)
	}
}

func brief(err error) string {
	if err == nil {
		return "OK"
	}
	return status.Code(err).String() + ": " + strings.ReplaceAll(status.Convert(err).Message(), "\n", " ")
}

// decide returns CA's next mutations. In each loop it changes the size of a group at most once, together with
// deletions.
func (d *driver) decide(seen map[string]listing) []op {
	var ops []op
	for _, id := range []string{"red", "blue"} {
		v, listed := seen[id]
		r := d.rng.Float64()
		if !listed {
			continue
		}
		var gone, creating, running []string
		for _, i := range v.list {
			switch {
			case !i.counts:
				if d.rng.Float64() < 0.1 {
					gone = append(gone, i.name) // CA repeats the deletion
				}
			case i.failed:
				if d.rng.Float64() < 0.5 {
					gone = append(gone, i.name)
				}
			case i.running:
				running = append(running, i.name)
			default:
				creating = append(creating, i.name)
			}
		}
		switch {
		case r < 0.25:
			delta := 1 + d.rng.IntN(2)
			ops = append(ops, op{group: id, kind: "grow", delta: delta, room: d.m.room(id, delta)})
		case r < 0.30 && len(creating) > 0:
			ops = append(ops, op{group: id, kind: "shrink", delta: 1 + d.rng.IntN(2)})
			continue // otherwise a removal could have two causes
		case r < 0.33 && len(creating) > 0:
			gone = append(gone, creating[0])
		}
		for _, name := range running {
			if d.rng.Float64() < 0.12 {
				ops = append(ops, op{group: id, kind: "delete", names: []string{name}})
			}
		}
		if len(gone) > 0 {
			ops = append(ops, op{group: id, kind: "delete", names: gone})
		}
	}
	if d.also != nil {
		ops = append(ops, d.also(seen)...)
	}
	return ops
}

// room reports whether delta more instances fit below the group's max, as far as the model knows.
func (m *model) room(group string, delta int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.groups[group]
	return g.target+g.grown+delta <= g.least && len(g.lost) == 0 && g.ends == g.epochs && g.may == 0
}
