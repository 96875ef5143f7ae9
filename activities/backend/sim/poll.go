package sim

import "time"

// idleReads is the number of reads without a change after which poll wakes the waiting calls nevertheless. Calls that
// still wait start the next series of reads, so the reads end when no call waits.
const idleReads = 100

// changed reports whether one of the objects with the keys has changed since the version seen. It also returns the
// channel woken. The next read that finds a change closes this channel. All waiting calls on this handle share one
// series of reads, and the first of these calls determines its interval.
func (w *World) changed(
	seen int64, keys []string, poll time.Duration,
) (now int64, yes bool, woken <-chan struct{}, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		err, w.failed = w.failed, nil
		return 0, false, nil, err
	}
	yes = w.readFrom > seen
	for _, key := range keys {
		yes = yes || w.touched[key] > seen
	}
	if w.woken == nil {
		w.woken = make(chan struct{})
		since := w.version
		time.AfterFunc(poll, func() { w.poll(poll, since, idleReads) })
	}
	return w.version, yes, w.woken, nil
}

func (w *World) poll(poll time.Duration, since int64, left int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = w.refresh()
	if w.failed == nil && w.version == since && left > 0 {
		time.AfterFunc(poll, func() { w.poll(poll, since, left-1) })
		return
	}
	close(w.woken)
	w.woken = nil
}
