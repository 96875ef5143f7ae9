package fleet

import "time"

// Fact is what somebody who watches nodes saw of one attempt: Kind is Registered, NotReady or Lost. It is a wire format:
// fields are only ever added. Facts are unnumbered and idempotent: any number of watchers tell the same one, also again,
// and what the last one says holds. Lost is a hint only: a watch may lag, so look before believing it.
type Fact struct {
	Instance string    `json:"instance"`
	Attempt  int       `json:"attempt"`
	Kind     EventKind `json:"kind"`
	At       time.Time `json:"at"` // when it was seen, by the watcher's clock
}
