package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

// deleteTimeout bounds the deletion of the created instances after the caller's context has ended.
const deleteTimeout = 15 * time.Second

const (
	running  = protos.InstanceStatus_instanceRunning
	creating = protos.InstanceStatus_instanceCreating
	deleting = protos.InstanceStatus_instanceDeleting
)

// provider is the provider under check. Its calls have the same time limit as CA's calls.
type provider struct {
	Options
	client protos.CloudProviderClient

	room   int             // max minus target size of the group at the start of Check
	before groupState      // state of the group at the start of Check
	second *groupState     // state of the second group before a rule created instances in it
	used   map[string]bool // all ids that the group has listed since the start of Check
	text   string          // text of the running check, see setText
}

// groupState holds the target size and the instances that a node group had at one moment.
type groupState struct {
	target int
	list   []*protos.Instance
}

// counted returns the ids of the counted instances. An instance counts if it is not being deleted.
func (p groupState) counted() (ids []string) {
	for _, i := range p.list {
		if i.GetStatus().GetInstanceState() != deleting {
			ids = append(ids, i.GetId())
		}
	}
	return ids
}

// in returns the number of instances in a state.
func (p groupState) in(state protos.InstanceStatus_InstanceState) (n int) {
	for _, i := range p.list {
		if i.GetStatus().GetInstanceState() == state {
			n++
		}
	}
	return n
}

func (p groupState) String() string {
	return fmt.Sprintf("target %d, %d listed, %d of them deleting", p.target, len(p.list), p.in(deleting))
}

// added returns the ids of the instances that p counts and the other state does not count.
func (p groupState) added(other groupState) []string {
	return slices.DeleteFunc(p.counted(), func(id string) bool { return slices.Contains(other.counted(), id) })
}

// sameAs reports whether the target sizes and the counted instances are equal. The states of the instances may
// differ.
func (p groupState) sameAs(other groupState) bool {
	return p.target == other.target && slices.Equal(slices.Sorted(slices.Values(p.counted())),
		slices.Sorted(slices.Values(other.counted())))
}

func newProvider(client protos.CloudProviderClient, o Options) *provider {
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.Settle <= 0 {
		o.Settle = 2 * time.Second
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.onRule == nil {
		o.onRule = func(string) {}
	}
	return &provider{Options: o, client: client, used: map[string]bool{}}
}

// prepare checks that the rules can use the group, and returns an error if they cannot.
func (p *provider) prepare(ctx context.Context) error {
	g, err := p.group(ctx, p.Group)
	if err != nil {
		return err
	}
	if p.before, err = p.readGroup(ctx, p.Group); err != nil {
		return err
	}
	if n := p.before.in(creating); n > 0 {
		return fmt.Errorf("node group %s is creating %d instances: use a group at rest that no Cluster Autoscaler uses",
			p.Group, n)
	}
	p.room = int(g.GetMaxSize()) - p.before.target
	if p.room < minRoom || p.room > maxRoom {
		return fmt.Errorf("node group %s can grow by %d: use a group that can grow by %d to %d", p.Group, p.room, minRoom,
			maxRoom)
	}
	return nil
}

// deleteCreated deletes the instances that the rules have created.
func (p *provider) deleteCreated(ctx context.Context) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), deleteTimeout)
		defer cancel()
	}
	err := p.removeNew(ctx, p.Group, p.before)
	if p.second != nil {
		err = errors.Join(err, p.removeNew(ctx, p.Second, *p.second))
		p.second = nil
	}
	return err
}

// removeNew deletes the instances that the group has received since the state `before`.
func (p *provider) removeNew(ctx context.Context, group string, before groupState) error {
	now, err := p.readGroup(ctx, group)
	if err != nil {
		return fmt.Errorf("new instances of node group %s cannot be listed, delete them yourself: %w", group, err)
	}
	made := now.added(before)
	if len(made) == 0 {
		return nil
	}
	if err := p.remove(ctx, group, made...); err != nil {
		return fmt.Errorf("new instances of node group %s cannot be deleted, delete %v yourself: %w", group, made, err)
	}
	return nil
}

// readGroup reads the target size and then the instances of a group, as CA does.
func (p *provider) readGroup(ctx context.Context, group string) (groupState, error) {
	target, err := p.target(ctx, group)
	if err != nil {
		return groupState{}, err
	}
	list, err := p.nodes(ctx, group)
	if group == p.Group {
		for _, i := range list {
			p.used[i.GetId()] = true
		}
	}
	return groupState{target, list}, err
}

// grow creates n instances. It returns their ids and the new state of the group.
func (p *provider) grow(ctx context.Context, n int) (ids []string, now groupState, err error) {
	was, err := p.readGroup(ctx, p.Group)
	if err == nil {
		err = p.increase(ctx, p.Group, n)
	}
	if err == nil {
		now, err = p.readGroup(ctx, p.Group)
	}
	if err != nil {
		return nil, now, err
	}
	if ids = now.added(was); len(ids) != n {
		return nil, now, fmt.Errorf("IncreaseSize(%d) added %d instances", n, len(ids))
	}
	return ids, now, nil
}

// readNow reads the group for a check. After an error it skips the check.
func (p *provider) readNow(ctx context.Context) groupState {
	now, err := p.readGroup(ctx, p.Group)
	skipOn(err)
	return now
}

// create creates n instances for a check. After an error it skips the check.
func (p *provider) create(ctx context.Context, n int) (ids []string, now groupState) {
	ids, now, err := p.grow(ctx, n)
	skipWithout(err)
	return ids, now
}

// skipWithout skips the check if err is not nil: the check then has no instances.
func skipWithout(err error) {
	if err != nil {
		skip("no instance for the check: %v", err)
	}
}
