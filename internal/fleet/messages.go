package fleet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The messages between entities, drivers and activities. They are wire formats: fields are only ever added.

// Generation orders the drivers of one instance: by the group's epoch, then by the starts the group has counted in it.
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

// End says whether a view is its driver's last one.
type End string

// The ends.
const (
	EndNone    End = ""        // the driver goes on
	EndFinal   End = "final"   // the driver completes: the group drives the instance from here
	EndStopped End = "stopped" // the driver fails, stopped by its group or an operator: what it names is to be undone
)

// View is what a driver tells of its instance: before each acquire, and at its end. Views of one instance are ordered
// by (Generation, Sequence); the driver's workflow counts the sequence before it schedules the step that tells the
// view.
type View struct {
	Instance   string     `json:"instance"`
	Generation Generation `json:"generation"`
	Sequence   int        `json:"sequence"`
	// Began is when the driver's run began: a start that comes once more, when the first run was terminated, has the same
	// generation.
	Began   time.Time `json:"began,omitzero"`
	End     End       `json:"end,omitempty"`
	Phase   Phase     `json:"phase"`
	Attempt int       `json:"attempt,omitempty"`
	Offer   *Offer    `json:"offer,omitempty"`
	Refused []string  `json:"refused,omitempty"`
	Failure *Failure  `json:"failure,omitempty"`
	Stuck   string    `json:"stuck,omitempty"`
	Force   bool      `json:"force,omitempty"`
	// Reason is what spoke for a provider just chosen.
	Reason string `json:"reason,omitempty"`
	// Abandoned are the attempts of this driver that are over and may have left something behind.
	Abandoned []Attempt `json:"abandoned,omitempty"`
	// SpecHash and BookedAt let a group that began anew take the instance back.
	SpecHash string    `json:"specHash,omitempty"`
	BookedAt time.Time `json:"bookedAt,omitzero"`
}

// Order is what a group tells the driver of an instance. Orders are idempotent; one for an earlier generation than the
// driver's is ignored.
type Order struct {
	Generation Generation `json:"generation"`
	// Stop ends the driver: it tells a stopped view and fails.
	Stop bool `json:"stop,omitempty"`
	// Deleted: CA gave the instance back.
	Deleted bool `json:"deleted,omitempty"`
	// Lost: the instance's objects are gone, or its provider is; pods are not waited for.
	Lost bool `json:"lost,omitempty"`
	// Paused: the group is paused; a driver without a grant fails.
	Paused bool `json:"paused,omitempty"`
	// Retry runs the step under way at once.
	Retry bool `json:"retry,omitempty"`
	// Resend, from 1, makes the driver send the request of Attempt to the provider again; the last one ends the attempt.
	Resend  int `json:"resend,omitempty"`
	Attempt int `json:"attempt,omitempty"`
}

// HoldRequest is one row of what drivers and undos tell a provider, and in part the sweep and the peering.
type HoldRequest struct {
	Kind HoldRequestKind `json:"kind"`
	Key  string          `json:"key,omitempty"`
	// Shape, Offer and budgets come with an acquire, Offer also with a left; Budget bounds the making of a peering,
	// NetworkBudget that of its network.
	Shape         corev1.ResourceList `json:"shape,omitempty"`
	Offer         *Offer              `json:"offer,omitempty"`
	Budget        metav1.Duration     `json:"budget,omitzero"`
	NetworkBudget metav1.Duration     `json:"networkBudget,omitzero"`
	// Refusing comes with a refusing, Message with a noRoom.
	Refusing *ProviderRefusal `json:"refusing,omitempty"`
	// Trace comes with an acquire: the step that asks, as a W3C traceparent. Nothing decides by it.
	Trace   string `json:"trace,omitempty"`
	Message string `json:"message,omitempty"`
}

// HoldRequestKind is what a HoldRequest asks for.
type HoldRequestKind string

// The kinds.
const (
	HoldAcquire  HoldRequestKind = "acquire"  // book a hold, or ask again what became of it
	HoldRelease  HoldRequestKind = "release"  // give it back, granted or not
	HoldBroken   HoldRequestKind = "broken"   // a step found the peering gone under a granted hold
	HoldRefusing HoldRequestKind = "refusing" // a step or a look found that the provider refuses us
	HoldLeftover HoldRequestKind = "leftover" // a sweep found what is left of a peering that nothing here stands for
	HoldNoRoom   HoldRequestKind = "noRoom"   // a peering being made lacks room on this cluster
)

// HoldState is what became of a hold.
type HoldState string

// The states of a hold.
const (
	HoldWaiting  HoldState = "waiting" // the peering is on its way
	HoldGranted  HoldState = "granted"
	HoldRefused  HoldState = "refused"
	HoldReleased HoldState = "released"
)

// Answer is what a provider tells the driver of a hold: what ends the wait, and to one that asks again that it waits.
type Answer struct {
	Key      string    `json:"key"`
	Provider string    `json:"provider"` // the provider's id
	State    HoldState `json:"state"`
	Failure  *Failure  `json:"failure,omitempty"`
}

// Fact is what a watcher of nodes saw of one attempt: Kind is Registered, NotReady or Lost. Any number of watchers tell
// the same one, also again, and the last one holds. Lost is a hint only: a watch may lag, so compare before acting.
type Fact struct {
	Instance string    `json:"instance"`
	Attempt  int       `json:"attempt"`
	Kind     EventKind `json:"kind"`
	// Confirms: it says what the instance's driver tells as well, and the watcher has told nothing else before.
	Confirms bool `json:"-"`
}

// RoundID names one round of the observer. Rounds of one leader have one term and are numbered; a later leader has a
// higher term.
type RoundID struct {
	Term   int64 `json:"term"`
	Number int64 `json:"number"`
}

// After reports whether the round is a later one.
func (r RoundID) After(o RoundID) bool {
	return r.Term > o.Term || r.Term == o.Term && r.Number > o.Number
}

// Follows reports whether the round is the next one of the same leader.
func (r RoundID) Follows(o RoundID) bool { return r.Term == o.Term && r.Number == o.Number+1 }

// Differences is what one round of the observer found about one entity: rows that disagree with what it published.
type Differences struct {
	Round RoundID `json:"round"`
	// Epoch and Revision are those of the entity's snapshot that the round has read; a provider has no epoch. What has
	// changed since is not judged.
	Epoch    string `json:"epoch,omitempty"`
	Revision int64  `json:"revision"`
	// Seen, for a group, is the newest position that an observer has ever saved of it; the zero value when none was saved.
	Seen Position `json:"seen,omitzero"`
	// Before is the time since the last complete round before this one, in seconds; 0 when it is not known. That round had
	// each instance that is missing now and was not missing then.
	Before int64 `json:"before,omitempty"`
	// Empty says that the list shows nothing at all.
	Empty bool `json:"empty,omitempty"`
	// Found are attempts with objects that are not as published; Missing are published Ready instances without objects.
	Found   Founds   `json:"found,omitempty"`
	Missing []string `json:"missing,omitempty"`
	// Unheld, for a provider: keys with objects and without a hold. Unused: holds without objects that no group books.
	Unheld []string `json:"unheld,omitempty"`
	Unused []string `json:"unused,omitempty"`
	// Keeps, for a group, are the instances whose Nodes are kept for the volumes of their provider; nil when that is as
	// the group published, or not known.
	Keeps *[]string `json:"keeps,omitempty"`
	// Lost are the instances that are lost by what was seen of their providers.
	Lost []Loss `json:"lost,omitempty"`
	// Standing, for a provider: what is wrong with it now; nil when that is as it published.
	Standing *Standing `json:"standing,omitempty"`
	// Remains, for a provider: one of our peerings exists although it published that there is none.
	Remains bool `json:"remains,omitempty"`
	// Unpeered, for a provider: it published a peering with standbys, and none of ours exists.
	Unpeered bool `json:"unpeered,omitempty"`
}

// Loss says that a Ready instance is lost by what was seen of its provider.
type Loss struct {
	Instance string `json:"instance"`
	Attempt  int    `json:"attempt"`
	Reason   string `json:"reason"`
	// Silent: it is lost for its Node's silence and its provider's or its network's; one whose Node is Ready again is not.
	Silent bool `json:"silent,omitempty"`
}

// Rows is how many rows disagree.
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

// Standby is one peering that a group keeps ready.
type Standby struct {
	Provider string `json:"provider"`
	// Key is that of its hold.
	Key   string    `json:"key"`
	State HoldState `json:"state"` // waiting or granted
	Since time.Time `json:"since"` // when it entered State
	// Worse is since when there is a better provider, or this one offers nothing; zero: it is not so.
	Worse time.Time `json:"worse,omitzero"`
}

// StandbyQuestion is what a look at the providers answers for a group, see RankStandby.
type StandbyQuestion struct {
	Spec InstanceSpec `json:"spec"`
	// Standby is how many the group keeps peered, Held those that it has.
	Standby  int                    `json:"standby,omitempty"`
	Held     []Standby              `json:"held,omitempty"`
	Failures map[string][]time.Time `json:"failures,omitempty"`
}

// StandbyRow is what such a look found of one provider.
type StandbyRow struct {
	Offer Offer   `json:"offer"`
	Price float64 `json:"price,omitempty"` // of a node of the group
	Score float64 `json:"score,omitempty"` // only with a Selection
	// Offers: it has an offer that has not expired. Fits: a node of the group would find room, and peering may be tried.
	Offers bool `json:"offers,omitempty"`
	Fits   bool `json:"fits,omitempty"`
	// Warm: its peering exists.
	Warm bool `json:"warm,omitempty"`
	// State is what became of the group's hold there; empty when the provider knows of none.
	State HoldState `json:"state,omitempty"`
	// Excluded is why the group may have nothing there; empty when it may.
	Excluded string `json:"excluded,omitempty"`
}

// GroupNotice is what the gRPC server, which alone reads the config, reports about a group. It is for people: nothing
// decides by it. The zero value is that there is nothing to say.
type GroupNotice struct {
	// Name is one of the Block names.
	Name    string `json:"name"`
	Message string `json:"message"`
}

// DriverInput starts scale-out or scale-in.
type DriverInput struct {
	Instance   Instance     `json:"instance"`
	Spec       InstanceSpec `json:"spec"`
	Generation Generation   `json:"generation"`
	// First: no scale-out of the instance was ever started before, and no other may be started by this command. The
	// workflow then closes as failed when the instance has failed; otherwise its id must stay in use.
	First bool `json:"first,omitempty"`
	// Ahead is how many instances of the group were started before this one and have named no provider yet; Taken is how
	// many the group has on each provider. Both spread a burst over the offers.
	Ahead int            `json:"ahead,omitempty"`
	Taken map[string]int `json:"taken,omitempty"`
	// Failures are when each provider has failed the group's instances lately, where its Selection weighs that.
	Failures map[string][]time.Time `json:"failures,omitempty"`
}

// UndoInput starts an undo.
type UndoInput struct {
	Attempt Attempt `json:"attempt"`
}

// DriverKind names the workflows that drive instances.
type DriverKind string

// The drivers of instances.
const (
	ScaleOut DriverKind = "scale-out"
	ScaleIn  DriverKind = "scale-in"
)
