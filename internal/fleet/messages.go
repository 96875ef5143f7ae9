package fleet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file defines the messages between entities, drivers and activities. They are wire formats: fields are only ever
// added.

// A Generation gives the drivers of one instance an order. Drivers are compared by the group's epoch, and within an
// epoch by Count. Count is the number of drivers that the group has started in the epoch, up to and including this
// driver.
type Generation struct {
	Epoch string `json:"epoch,omitempty"`
	Count int    `json:"count,omitempty"`
}

// Known reports whether the generation was ever set.
func (g Generation) Known() bool { return g.Epoch != "" }

// Before reports whether g was started before o.
func (g Generation) Before(o Generation) bool {
	return EpochBefore(g.Epoch, o.Epoch) || g.Epoch == o.Epoch && g.Count < o.Count
}

// End reports whether a view is its driver's last view, and how the driver ends.
type End string

// These are the ends.
const (
	EndNone    End = ""        // the driver continues
	EndFinal   End = "final"   // the driver completes: from now on the group decides about the instance
	EndStopped End = "stopped" // the group or an operator stopped the driver: it fails, and is undone
)

// View is a driver's report about its instance, sent before each acquire and at the driver's end. Views of one instance
// are ordered by (Generation, Sequence). The driver's workflow increases the sequence before it schedules the step that
// sends the view.
type View struct {
	Instance   string     `json:"instance"`
	Generation Generation `json:"generation"`
	Sequence   int        `json:"sequence"`
	// Began is the start time of the driver's run. If the first run is terminated and the start is repeated, both runs
	// have the same generation and different start times.
	Began   time.Time `json:"began,omitzero"`
	End     End       `json:"end,omitempty"`
	Phase   Phase     `json:"phase"`
	Attempt int       `json:"attempt,omitempty"`
	Offer   *Offer    `json:"offer,omitempty"`
	Refused []string  `json:"refused,omitempty"`
	Failure *Failure  `json:"failure,omitempty"`
	Stuck   string    `json:"stuck,omitempty"`
	Force   bool      `json:"force,omitempty"`
	// Reason explains why the driver has just chosen this provider.
	Reason string `json:"reason,omitempty"`
	// Abandoned lists this driver's ended attempts, which may have left objects behind.
	Abandoned []Attempt `json:"abandoned,omitempty"`
	// With SpecHash and BookedAt, a group that was reset can adopt the instance.
	SpecHash string    `json:"specHash,omitempty"`
	BookedAt time.Time `json:"bookedAt,omitzero"`
}

// Order is a message from a group to the driver of an instance. Orders are idempotent. A driver ignores an order for an
// earlier generation than its own.
type Order struct {
	Generation Generation `json:"generation"`
	// Stop ends the driver: it sends a stopped view and fails.
	Stop bool `json:"stop,omitempty"`
	// Deleted reports that CA deleted the instance.
	Deleted bool `json:"deleted,omitempty"`
	// Lost reports that the instance's objects or its provider are gone, so that the driver does not wait for pods.
	Lost bool `json:"lost,omitempty"`
	// Paused reports that the group is paused. The instance then fails if its driver has not received a grant.
	Paused bool `json:"paused,omitempty"`
	// Retry makes the driver run the step in progress again immediately.
	Retry bool `json:"retry,omitempty"`
	// Resend, a number from 1, makes the driver repeat the request of Attempt to the provider. After too many
	// requests without an answer, the driver ends the attempt instead.
	Resend  int `json:"resend,omitempty"`
	Attempt int `json:"attempt,omitempty"`
}

// HoldRequest is one row of a message to a provider. Drivers and undos send most kinds. The observer's sweep and the
// peering workflow also send some kinds.
type HoldRequest struct {
	Kind HoldRequestKind `json:"kind"`
	Key  string          `json:"key,omitempty"`
	// Shape, Offer and the budgets are set in a request of kind acquire, and Offer also in a request of kind leftover.
	// Budget bounds the time to establish a peering, and NetworkBudget the time to set up its network.
	Shape         corev1.ResourceList `json:"shape,omitempty"`
	Offer         *Offer              `json:"offer,omitempty"`
	Budget        metav1.Duration     `json:"budget,omitzero"`
	NetworkBudget metav1.Duration     `json:"networkBudget,omitzero"`
	// Refusing is set in a request of kind refusing, and Message in a request of kind noRoom.
	Refusing *ProviderRefusal `json:"refusing,omitempty"`
	// Trace is set in a request of kind acquire: the span of the requesting step, as a W3C traceparent. It affects no
	// decision.
	Trace   string `json:"trace,omitempty"`
	Message string `json:"message,omitempty"`
}

// HoldRequestKind names the kind of a HoldRequest.
type HoldRequestKind string

// These are the kinds.
const (
	HoldAcquire  HoldRequestKind = "acquire"  // book a hold, or return the state of the booked hold
	HoldRelease  HoldRequestKind = "release"  // release the hold, whether it is granted or not
	HoldBroken   HoldRequestKind = "broken"   // a step found that the peering of a granted hold is gone
	HoldRefusing HoldRequestKind = "refusing" // a step found that the provider refuses us
	HoldLeftover HoldRequestKind = "leftover" // a sweep found leftovers of a peering without any booking
	HoldNoRoom   HoldRequestKind = "noRoom"   // this cluster lacks capacity for a peering that is being made
)

// HoldState names the state of a hold.
type HoldState string

// These are the states of a hold.
const (
	HoldWaiting  HoldState = "waiting" // the peering is being made
	HoldGranted  HoldState = "granted"
	HoldRefused  HoldState = "refused"
	HoldReleased HoldState = "released"
)

// Answer is a provider's message to the driver of a hold. Every State except HoldWaiting ends the driver's wait.
// HoldWaiting occurs only in the answer to a repeated request.
type Answer struct {
	Key      string    `json:"key"`
	Provider string    `json:"provider"` // the provider's id
	State    HoldState `json:"state"`
	Failure  *Failure  `json:"failure,omitempty"`
}

// Fact is a watcher's report about the Node of one attempt; Kind is Registered, NotReady or Lost. Several watchers
// may report the same fact, and may repeat it; the last report counts. Lost is only a hint, because a watch may lag:
// the group inspects the objects before it acts.
type Fact struct {
	Instance string    `json:"instance"`
	Attempt  int       `json:"attempt"`
	Kind     EventKind `json:"kind"`
	// Confirms reports that the fact repeats the view of the instance's driver, and that the watcher has reported
	// nothing else about the attempt before.
	Confirms bool `json:"-"`
}

// RoundID identifies one round of the observer. Rounds of one leader have one term and consecutive numbers. A later
// leader has a higher term.
type RoundID struct {
	Term   int64 `json:"term"`
	Number int64 `json:"number"`
}

// After reports whether the round is later than o.
func (r RoundID) After(o RoundID) bool {
	return r.Term > o.Term || r.Term == o.Term && r.Number > o.Number
}

// Follows reports whether the round comes directly after o, by the same leader.
func (r RoundID) Follows(o RoundID) bool { return r.Term == o.Term && r.Number == o.Number+1 }

// Differences contains the findings of one round of the observer about one entity: the rows that disagree with the
// entity's snapshot.
type Differences struct {
	Round RoundID `json:"round"`
	// Epoch and Revision identify the entity's snapshot that the round has read; a provider has no epoch. The entity
	// ignores findings about parts that have changed after this snapshot.
	Epoch    string `json:"epoch,omitempty"`
	Revision int64  `json:"revision"`
	// Seen, for a group, is the newest position that an observer has ever saved; the zero value when none was saved.
	Seen Position `json:"seen,omitzero"`
	// Before is the time between the last complete round and this round, in seconds; 0 when it is not known. If this
	// round is the first to list an instance in Missing, the last complete round still found the instance.
	Before int64 `json:"before,omitempty"`
	// Empty reports that the list of the group's objects is completely empty.
	Empty bool `json:"empty,omitempty"`
	// Found lists attempts whose objects differ from the snapshot. Missing lists published Ready instances without
	// objects.
	Found   Founds   `json:"found,omitempty"`
	Missing []string `json:"missing,omitempty"`
	// Unheld, for a provider, lists the names of objects for which the provider has no hold. Unused lists the keys of
	// the provider's holds that have neither objects nor a booking.
	Unheld []string `json:"unheld,omitempty"`
	Unused []string `json:"unused,omitempty"`
	// Keeps, for a group, lists the instances whose Nodes are kept because volumes are on their provider. It is nil
	// when the list is unchanged or not known.
	Keeps *[]string `json:"keeps,omitempty"`
	// Lost lists the instances that are lost according to the evidence about their providers.
	Lost []Loss `json:"lost,omitempty"`
	// Standing, for a provider, is the provider's present fault; nil when the fault is unchanged.
	Standing *Standing `json:"standing,omitempty"`
	// Remains, for a provider, reports that one of our peerings exists although the provider published no peering.
	Remains bool `json:"remains,omitempty"`
	// Unpeered, for a provider, reports that the provider published a peering with standbys, but the round found no
	// such peering of ours.
	Unpeered bool `json:"unpeered,omitempty"`
}

// Loss reports that a Ready instance is lost according to the evidence about its provider.
type Loss struct {
	Instance string `json:"instance"`
	Attempt  int    `json:"attempt"`
	Reason   string `json:"reason"`
	// Silent reports that the Node is not ready, and that its provider does not answer or the network is broken. The
	// group applies such a loss only if the Node has been not ready for budgets.unready.
	Silent bool `json:"silent,omitempty"`
}

// Rows returns the number of rows that disagree.
func (d Differences) Rows() int {
	n := len(d.Found) + len(d.Missing) + len(d.Unheld) + len(d.Unused) + len(d.Lost)
	if d.Remains || d.Unpeered {
		n++
	}
	if d.Keeps != nil {
		n++
	}
	if d.Standing != nil {
		n++
	}
	return n
}

// Standby describes one peering that a group keeps ready.
type Standby struct {
	Provider string `json:"provider"`
	// Key is the key of the standby's hold.
	Key   string    `json:"key"`
	State HoldState `json:"state"` // waiting or granted
	Since time.Time `json:"since"` // the time at which the standby entered State
	// Worse is the time since which a better provider exists, or this provider has no offer. It starts again when the
	// group tries a better provider. It is zero while neither is true.
	Worse time.Time `json:"worse,omitzero"`
}

// StandbyQuestion is the input for ranking the providers of a group's standbys, see RankStandby.
type StandbyQuestion struct {
	Spec InstanceSpec `json:"spec"`
	// Standby is the number of providers that the group keeps peered. Held lists its present standbys.
	Standby  int                    `json:"standby,omitempty"`
	Held     []Standby              `json:"held,omitempty"`
	Failures map[string][]time.Time `json:"failures,omitempty"`
}

// StandbyRow is the result of the ranking for one provider.
type StandbyRow struct {
	Offer Offer   `json:"offer"`
	Price float64 `json:"price,omitempty"` // the hourly price of a node of the group
	Score float64 `json:"score,omitempty"` // set only with a Selection
	// Offers reports that the provider has an offer that has not expired. Fits reports that a node of the group would
	// fit, and that a peering may be tried.
	Offers bool `json:"offers,omitempty"`
	Fits   bool `json:"fits,omitempty"`
	// Warm reports that the provider's peering exists.
	Warm bool `json:"warm,omitempty"`
	// State is the state of the group's hold at the provider; empty when the provider has no such hold.
	State HoldState `json:"state,omitempty"`
	// Excluded is the reason why the group may have no hold at the provider; empty when it may have one.
	Excluded string `json:"excluded,omitempty"`
}

// GroupNotice is a message of the gRPC server about a group. The server sends it to the group, because only the server
// reads the config. Users see the message, and it affects no decision. The zero value means that the server has no
// message.
type GroupNotice struct {
	// Name is one of the Block constants (snapshot.go).
	Name    string `json:"name"`
	Message string `json:"message"`
}

// DriverInput is the input of scale-out and scale-in.
type DriverInput struct {
	Instance   Instance     `json:"instance"`
	Spec       InstanceSpec `json:"spec"`
	Generation Generation   `json:"generation"`
	// First reports that no scale-out of the instance was ever started before. With First, Temporal refuses the start
	// if the workflow id was ever used, so the workflow may close as failed when the instance has failed. Without First
	// the workflow must complete instead, so that its id cannot be used again.
	First bool `json:"first,omitempty"`
	// Ahead is the number of the group's instances that were started before this instance and have no provider yet.
	// Taken contains the number of the group's nodes on each provider. Ahead and Taken serve to distribute a burst of
	// scale-outs over the offers.
	Ahead int            `json:"ahead,omitempty"`
	Taken map[string]int `json:"taken,omitempty"`
	// Failures is a copy of Ledger.Failures, if the group's Selection weighs failures.
	Failures map[string][]time.Time `json:"failures,omitempty"`
}

// UndoInput is the input of an undo.
type UndoInput struct {
	Attempt Attempt `json:"attempt"`
}

// DriverKind names the workflows that drive instances.
type DriverKind string

// These are the drivers of instances.
const (
	ScaleOut DriverKind = "scale-out"
	ScaleIn  DriverKind = "scale-in"
)
