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

// These constants bound the requests to the API server.
const (
	// writesEachSecond bounds the rate at which a mirror writes.
	writesEachSecond = 5
	// requestBound limits one request.
	requestBound = 10 * time.Second
	// listEvery is the interval between two lists of the objects. A list finds changes that other clients have made.
	listEvery = 5 * time.Minute
	// retryAfter is the wait after a failed pass. A pass fails, for example, if the CRDs or the permissions are missing.
	retryAfter = 3 * time.Minute
)

// Objects reads and writes the mirror's objects of one hub. Errors come from the API server, for example a conflict.
type Objects interface {
	// List returns the hub's objects of a kind.
	List(ctx context.Context, kind Kind) ([]Object, error)
	// Apply sends one request, and returns the object that now exists. If o has no Version, the request creates the object
	// without a status. Otherwise the request replaces the status.
	Apply(ctx context.Context, o Object) (Object, error)
	// Delete deletes the object in this Version.
	Delete(ctx context.Context, o Object) error
}

// Mirror writes the groups and offers of a hub to the cluster. Groups and Offers may be called at any time, and do not
// block.
type Mirror struct {
	objects Objects
	log     *slog.Logger

	mu      sync.Mutex
	seen    seen
	version int
	changed chan struct{} // contains an element after seen has changed
}

// New returns a Mirror. It writes nothing until Run is called.
func New(objects Objects, log *slog.Logger) *Mirror {
	return &Mirror{objects: objects, log: log, changed: make(chan struct{}, 1)}
}

// Groups replaces the groups. unread are the names of the groups that the observer could not read; the mirror leaves
// their objects unchanged. ended contains the costs of ended groups.
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

// Run writes the objects until ctx ends, and then forgets the data, because another leader may change the groups before
// this process leads again. Only one process of a hub may execute Run at a time. Run logs each new error once and
// retries.
func (m *Mirror) Run(ctx context.Context) {
	defer m.replace(func(s *seen) { *s = seen{} })
	w := writer{Mirror: m, limit: rate.NewLimiter(writesEachSecond, 1), refused: map[Key]bool{}, logged: map[Key]bool{}}
	var logged logonce.LastError
	for {
		err := w.pass(ctx)
		if ctx.Err() != nil {
			return
		}
		if logged.IsNew(err) {
			m.log.Info("cannot write the objects for kubectl get; trying again every three minutes", "error", err)
		}
		changed, next := m.changed, listEvery
		if err != nil {
			w.known, changed, next = nil, nil, retryAfter
		}
		if !await(ctx, changed, next) {
			return
		}
	}
}

// await waits for a change, for at most the duration `most`. It returns false when ctx has ended.
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

// writer holds the state of one Run.
type writer struct {
	*Mirror
	limit *rate.Limiter
	// known holds the objects in the form in which they were last listed or written; nil before the first list and after a
	// failed pass. listed is the time of the last list.
	known  map[Key]Object
	listed time.Time
	// refused marks the objects that are skipped until the next list, because the API server refused a write. logged marks
	// the objects whose refusal was logged.
	refused, logged map[Key]bool

	want    wanted
	version int // of want
	from    time.Time
}

// pass lists the objects when a list is due, and then writes each object that differs. It uses data that arrives during
// the pass for the objects that it has not written yet.
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
		if err := w.reconcile(ctx, key); err != nil {
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
	maps.DeleteFunc(w.logged, func(key Key, _ bool) bool { return w.want.status[key] == nil })
	return nil
}

// refresh computes the wanted objects when the data has changed. It also computes them when the last computation is
// older than listEvery, because costs depend on the time.
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

// keys returns the keys of all objects that exist or should exist, sorted by kind and name.
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

// reconcile writes one object until it has the wanted content. A new object needs two requests: one creates it, and one
// sets its status. reconcile returns an error when the pass cannot continue.
func (w *writer) reconcile(ctx context.Context, key Key) error {
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

// differs reports whether an object must be written or deleted. It returns the object to write, or nil if the object
// must be deleted.
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
	status = withTimes(status, have, time.Now())
	if exists && reflect.DeepEqual(status, have.Status) {
		return nil, false
	}
	have.Status = status
	return &have, true
}

// write sends one request: it deletes the object if next is nil. Otherwise it calls Apply with next.
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
		delete(w.logged, key)
	}
	return err
}

// skips reports whether the error concerns only this object. If so, the writer skips the object until the next list,
// and skips logs the error once. If another client has changed or deleted the object, the error is not logged, and the
// next pass lists again.
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
	if !w.logged[key] {
		w.log.Info("cannot write an object for kubectl get", "kind", key.Kind, "name", key.Name, "error", err)
	}
	w.refused[key], w.logged[key] = true, true
	return true
}
