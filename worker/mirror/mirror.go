package mirror

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/logonce"
)

// Bounds of the requests.
const (
	// writesEachSecond bounds the writes of a mirror.
	writesEachSecond = 5
	// requestBound limits one request.
	requestBound = 10 * time.Second
	// listEvery is the time between two lists, which find changes by other parties.
	listEvery = 5 * time.Minute
	// againAfter is the time after a pass that failed, such as without the CRDs or the right to them.
	againAfter = 3 * time.Minute
)

// Objects has the objects of one hub.
type Objects interface {
	// List returns the objects of a kind that the hub has made.
	List(ctx context.Context, kind Kind) ([]Object, error)
	// Apply creates an object that does not exist, without a status, or replaces the status. It sends one request, and
	// returns the object as it now exists.
	Apply(ctx context.Context, o Object) (Object, error)
	Delete(ctx context.Context, o Object) error
}

// Mirror writes the groups and offers of a hub. Groups and Offers may be called at any time, and do not block.
type Mirror struct {
	objects Objects
	log     *slog.Logger

	mu      sync.Mutex
	seen    seen
	version int
	changed chan struct{} // has an element when seen has changed
}

// New returns a Mirror, which writes nothing before Run.
func New(objects Objects, log *slog.Logger) *Mirror {
	return &Mirror{objects: objects, log: log, changed: make(chan struct{}, 1)}
}

// Groups replaces the groups. The objects of unread groups stay as they are. ended has the costs of ended groups.
func (m *Mirror) Groups(groups []fleet.Snapshot, unread []string, ended []money.Spent) {
	m.replace(func(s *seen) { s.groups, s.unread, s.ended, s.hasGroups = groups, unread, ended, true })
}

// Offers replaces the offers.
func (m *Mirror) Offers(offers []market.Offer) {
	m.replace(func(s *seen) { s.offers, s.hasOffers = offers, true })
}

func (m *Mirror) replace(change func(*seen)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.seen)
	m.version++
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

func (m *Mirror) newest() (seen, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen, m.version
}

// Run writes until ctx ends. It then forgets the data, because the next leader may change the groups. Only one process
// of a hub may run it at a time.
func (m *Mirror) Run(ctx context.Context) {
	defer m.replace(func(s *seen) { *s = seen{} })
	w := writer{Mirror: m, limit: rate.NewLimiter(writesEachSecond, 1), refused: map[Key]bool{}, noted: map[Key]bool{}}
	var hears logonce.LastError
	for {
		err := w.pass(ctx)
		if ctx.Err() != nil {
			return
		}
		if hears.IsNew(err) {
			m.log.Info("groups and offers are not shown in kubectl get; trying again each few minutes", "why", err)
		}
		changed, next := m.changed, listEvery
		if err != nil {
			w.known, changed, next = nil, nil, againAfter
		}
		if !await(ctx, changed, next) {
			return
		}
	}
}

// await waits for a change, at most for the given time. It returns false when ctx has ended.
func await(ctx context.Context, changed <-chan struct{}, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// writer is the state of one Run.
type writer struct {
	*Mirror
	limit *rate.Limiter
	// known has the objects as they were last listed or written; nil before the list at the time listed.
	known  map[Key]Object
	listed time.Time
	// refused has the objects that cannot be written until the next list, and noted the objects that were logged.
	refused, noted map[Key]bool

	want    wanted
	version int // of want
	from    time.Time
}

// pass lists the objects when that is due, and then writes the differences. A change of the data during the pass counts
// for each object that has not been written.
func (w *writer) pass(ctx context.Context) error {
	if w.known == nil || time.Since(w.listed) >= listEvery {
		if err := w.list(ctx); err != nil {
			return err
		}
	}
	if err := w.refresh(); err != nil {
		return err
	}
	for _, key := range w.keys() {
		if err := w.settle(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) list(ctx context.Context) error {
	known := map[Key]Object{}
	for _, kind := range []Kind{KindGroup, KindOffer} {
		bounded, cancel := context.WithTimeout(ctx, requestBound)
		all, err := w.objects.List(bounded, kind)
		cancel()
		if err != nil {
			return err
		}
		for _, o := range all {
			known[o.Key] = o
		}
	}
	w.known, w.listed = known, time.Now()
	clear(w.refused)
	maps.DeleteFunc(w.noted, func(key Key, _ bool) bool { return w.want.status[key] == nil })
	return nil
}

// refresh renders the newest data, if that has changed or the costs of another hour are due.
func (w *writer) refresh() error {
	s, version := w.newest()
	now := time.Now()
	if version == w.version && now.Sub(w.from) < listEvery {
		return nil
	}
	want, err := wantedOf(s, now)
	if err != nil {
		return err
	}
	w.want, w.version, w.from = want, version, now
	return nil
}

// keys returns the objects that exist or should exist, in order.
func (w *writer) keys() (keys []Key) {
	for key := range w.want.status {
		keys = append(keys, key)
	}
	for key := range w.known {
		if _, too := w.want.status[key]; !too {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b Key) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return keys
}

// settle writes one object until it has its content. A new object takes two requests. It fails when the pass cannot
// continue.
func (w *writer) settle(ctx context.Context, key Key) error {
	for range 2 {
		if _, differs := w.differs(key); !differs {
			return nil
		}
		if err := w.limit.Wait(ctx); err != nil {
			return err
		}
		if err := w.refresh(); err != nil {
			return err
		}
		next, differs := w.differs(key)
		if !differs {
			return nil
		}
		if err := w.write(ctx, key, next); err != nil && !w.skips(key, err) {
			return err
		}
	}
	return nil
}

// differs returns the next form of an object that has to be written: nil to delete it.
func (w *writer) differs(key Key) (next *Object, differs bool) {
	have, exists := w.known[key]
	status, wanted := w.want.status[key]
	switch {
	case w.refused[key] || w.want.stays[key]:
		return nil, false
	case !wanted:
		return nil, exists && w.want.whole[key.Kind]
	}
	have.Key = key
	status = settled(status, have, time.Now())
	if exists && reflect.DeepEqual(status, have.Status) {
		return nil, false
	}
	have.Status = status
	return &have, true
}

// write sends one request.
func (w *writer) write(ctx context.Context, key Key, next *Object) error {
	ctx, cancel := context.WithTimeout(ctx, requestBound)
	defer cancel()
	if next == nil {
		err := w.objects.Delete(ctx, w.known[key])
		if err == nil || apierrors.IsNotFound(err) {
			delete(w.known, key)
			return nil
		}
		return err
	}
	now, err := w.objects.Apply(ctx, *next)
	if err == nil {
		w.known[key] = now
		delete(w.noted, key)
	}
	return err
}

// skips reports whether the error concerns this object alone. The object is then left until the next list. The error is
// logged once, except for an object that another party has changed or deleted.
func (w *writer) skips(key Key, err error) bool {
	_, exists := w.known[key]
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err) && exists:
		w.refused[key] = true
		w.listed = time.Time{} // the next pass lists
		return true
	case apierrors.IsAlreadyExists(err):
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
	default:
		return false
	}
	if !w.noted[key] {
		w.log.Info("an object for kubectl get cannot be written", "kind", key.Kind, "name", key.Name, "why", err)
	}
	w.refused[key], w.noted[key] = true, true
	return true
}
