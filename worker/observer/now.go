package observer

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// RoundNow requests a round that begins after this call, and returns the error of that round. It blocks until the round
// has ended or ctx ends. While another process leads, no round runs here, and RoundNow blocks until ctx ends.
func (o *Observer) RoundNow(ctx context.Context) error {
	done := make(chan error, 1)
	select {
	case o.requests() <- done:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *Observer) requests() chan chan error {
	o.requestOnce.Do(func() { o.requested = make(chan chan error) })
	return o.requested
}

// wait waits until the next round is due or requested. It returns false when ctx has ended.
func (o *Observer) wait(ctx context.Context, next time.Time) bool {
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	select {
	case <-timer.C:
	case done := <-o.requests():
		o.progress.expect(done)
	case <-ctx.Done():
		return false
	}
	return true
}

// answer sends the result of a round to the callers of RoundNow that wait for it.
func (o *Observer) answer(err error) {
	for _, done := range o.progress.expected() {
		done <- err
	}
}

// Progress describes the rounds of the observer in this process.
type Progress struct {
	// Leads reports whether this process leads, and so runs the rounds.
	Leads bool
	// Complete is the beginning of the last complete round of this process; zero before the first complete round.
	Complete time.Time
	// Took is the duration of the last complete round.
	Took time.Duration
	// Failed is the error of the last round; "" if the round was complete.
	Failed string
	// Unread is the number of entities that the last round could not read.
	Unread int
	// Paused reports whether an operator has paused the observer.
	Paused bool
}

// progress holds the state of the rounds that other goroutines read.
type progress struct {
	mu      sync.Mutex
	now     Progress
	waiting []chan error
	active  map[string]bool
	specs   []fleet.GroupSpec
}

// Progress returns the state of the rounds. It does not block.
func (o *Observer) Progress() Progress {
	o.progress.mu.Lock()
	defer o.progress.mu.Unlock()
	return o.progress.now
}

// Active reports whether the provider had holds (uses of its peering by instances) or objects owned by us in the last
// round; known is false before the first round.
func (o *Observer) Active(provider string) (active, known bool) {
	o.progress.mu.Lock()
	defer o.progress.mu.Unlock()
	return o.progress.active[provider], o.progress.active != nil
}

// Specs returns the specs of the node groups that the last round has read.
func (o *Observer) Specs() []fleet.GroupSpec {
	o.progress.mu.Lock()
	defer o.progress.mu.Unlock()
	return o.progress.specs
}

// read stores the specs and the active providers of a round.
func (p *progress) read(b booked) {
	var specs []fleet.GroupSpec
	active := map[string]bool{}
	for _, provider := range b.providers {
		if !idle(provider) {
			active[provider.ID] = true
		}
	}
	for _, g := range b.groups {
		if g.Spec != nil {
			specs = append(specs, *g.Spec)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active, p.specs, p.now.Unread = active, specs, len(b.unread)
}

func (p *progress) lead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Leads = true
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Leads, p.active = false, nil
}

func (p *progress) paused(is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Paused = is
}

func (p *progress) round(err error, began time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now.Failed = ""; err != nil {
		p.now.Failed = err.Error()
		return
	}
	p.now.Complete, p.now.Took = began, time.Since(began)
}

func (p *progress) expect(done chan error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, done)
}

func (p *progress) expected() []chan error {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.waiting
	p.waiting = nil
	return all
}

// mirror passes the groups that a round has read to the Mirror.
func (o *Observer) mirror(b booked) {
	if o.Mirror == nil {
		return
	}
	var unread []string
	for id := range b.unread {
		if name, group := strings.CutPrefix(id, groupID("")); group {
			unread = append(unread, name)
		}
	}
	o.Mirror.Groups(b.groups, unread, o.bills.ended.Rows)
}
