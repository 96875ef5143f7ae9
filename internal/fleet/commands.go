package fleet

import (
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// Command is what an entity wants done outside: data, executed by an activity for many targets at once. It is part of
// the entity's state until its result has come, so continue-as-new carries it; executing one twice is harmless.
type Command struct {
	ID   int64       `json:"id"`
	Kind CommandKind `json:"kind"`
	// Instance and Generation name a driver.
	Instance   string     `json:"instance,omitempty"`
	Generation Generation `json:"generation,omitzero"`
	Attempt    *Attempt   `json:"attempt,omitempty"`
	Order      *Order     `json:"order,omitempty"`
	Answer     *Answer    `json:"answer,omitempty"`
	// First, of a start: no scale-out of the instance was ever started before.
	First bool `json:"first,omitempty"`
	// Driver is the kind of driver that Start, Order or Check are about, or "unpeering" for Cancel.
	Driver DriverKind `json:"driver,omitempty"`
	// Instances are those that Check and Observe are about.
	Instances []string `json:"instances,omitempty"`
	// Provider and Hold are what is told a provider.
	Provider string       `json:"provider,omitempty"`
	Hold     *HoldRequest `json:"hold,omitempty"`
	// NotBefore delays the execution; zero means at once.
	NotBefore time.Time `json:"notBefore,omitzero"`
}

// CommandKind says what a Command does.
type CommandKind string

// The kinds.
const (
	CommandStart     CommandKind = "start"     // start an instance's driver
	CommandUndo      CommandKind = "undo"      // start undo/<name>-<attempt>
	CommandOrder     CommandKind = "order"     // tell a driver
	CommandAnswer    CommandKind = "answer"    // tell the driver of a hold
	CommandDescribe  CommandKind = "describe"  // describe drivers, and inspect what exists of the closed ones
	CommandInspect   CommandKind = "inspect"   // inspect what exists of instances
	CommandRecover   CommandKind = "recover"   // list everything that exists
	CommandPeering   CommandKind = "peering"   // start peering/<id>
	CommandUnpeering CommandKind = "unpeering" // start unpeering/<id>
	CommandCancel    CommandKind = "cancel"    // cancel unpeering/<id>
	CommandHold      CommandKind = "hold"      // tell a provider of a standby's hold
	CommandStandby   CommandKind = "standby"   // look which providers to keep peered
	CommandRefusal   CommandKind = "refusal"   // read whether a provider still refuses us
)

// Result is what became of a Command. An entity that gets no result executes the command again.
type Result struct {
	ID      int64   `json:"id"`
	Outcome Outcome `json:"outcome"`
	Error   string  `json:"error,omitempty"`
	// Drivers answers Check.
	Drivers []DriverStatus `json:"drivers,omitempty"`
	// Empty: the list of all that exists of the group shows nothing at all.
	Empty bool `json:"empty,omitempty"`
	// Found answers Observe and Recover; Peering, LingerSeconds and Unpeer a provider's Recover.
	Found         Founds       `json:"found,omitempty"`
	Peering       *Provider    `json:"peering,omitempty"`
	LingerSeconds *int64       `json:"lingerSeconds,omitempty"`
	Unpeer        UnpeerPolicy `json:"unpeer,omitempty"`
	// Paused, of a group's Recover, is whether the group was paused when the observer last saved it; nil when the observer
	// has saved nothing of it.
	Paused *bool `json:"paused,omitempty"`
	// Bill, of a group's Recover, is the bill of the group that the observer saved last; nil when it has saved none.
	Bill *money.Bill `json:"bill,omitempty"`
	// Cordoned: the provider was when its last life ended.
	Cordoned bool `json:"cordoned,omitempty"`
	// Refusing answers Ask; nil: it no longer refuses.
	Refusing *ProviderRefusal `json:"refusing,omitempty"`
	// Standby answers Standby.
	Standby []StandbyRow `json:"standby,omitempty"`
}

// Outcome says how a command went.
type Outcome string

// The outcomes.
const (
	OutcomeDone           Outcome = "done"
	OutcomeAlreadyStarted Outcome = "alreadyStarted" // a workflow of that id runs, or has completed
	OutcomeNotRunning     Outcome = "notRunning"     // the target is closed, and did not complete
	OutcomeCompleted      Outcome = "completed"      // the target completed: its last view was delivered
	OutcomeFailed         Outcome = "failed"         // it could not be told; send it again
)

// DriverStatus is what Check found of one driver.
type DriverStatus struct {
	Instance string `json:"instance"`
	// Running: it is open; Failing: its workflow task has failed again and again for ten minutes.
	Running bool `json:"running,omitempty"`
	Failing bool `json:"failing,omitempty"`
	// Completed: it is closed, and its last view was delivered.
	Completed bool `json:"completed,omitempty"`
	// Found is what exists of the instance's newest attempt, when the driver is not running.
	Found *Found `json:"found,omitempty"`
}

// Commands are the commands of an entity whose results have not come, oldest first.
type Commands struct {
	Last int64     `json:"last,omitempty"`
	Open []Command `json:"open,omitempty"`
}

// Add opens a command.
func (c *Commands) Add(cmd Command) {
	c.Last++
	cmd.ID = c.Last
	c.Open = append(c.Open, cmd)
}

// Find returns the open command of that id, or nil.
func (c *Commands) Find(id int64) *Command {
	n := slices.IndexFunc(c.Open, func(cmd Command) bool { return cmd.ID == id })
	if n < 0 {
		return nil
	}
	return &c.Open[n]
}

// Ended takes out the command that a result is about, and returns it; nil when it is not open, or has failed and is to
// be sent again.
func (c *Commands) Ended(r Result, now time.Time) *Command {
	n := slices.IndexFunc(c.Open, func(cmd Command) bool { return cmd.ID == r.ID })
	switch {
	case n < 0:
		return nil
	case r.Outcome == OutcomeFailed && c.Open[n].Kind != CommandRefusal: // a question is asked again anyway
		c.Open[n].NotBefore = now.Add(retryAfter)
		return nil
	}
	cmd := c.Open[n]
	c.Open = slices.Delete(c.Open, n, n+1)
	return &cmd
}

// Has reports whether a command of one of these kinds is open.
func (c *Commands) Has(kinds ...CommandKind) bool {
	return slices.ContainsFunc(c.Open, func(cmd Command) bool { return slices.Contains(kinds, cmd.Kind) })
}

// Drop takes out every command that match accepts.
func (c *Commands) Drop(match func(Command) bool) { c.Open = slices.DeleteFunc(c.Open, match) }

// retryAfter is how long a command that could not be executed waits before the next try.
const retryAfter = 2 * time.Second

// Due is when the first delayed command may run; zero when none is delayed.
func (c *Commands) Due(now time.Time) time.Time {
	var next time.Time
	for _, cmd := range c.Open {
		if cmd.NotBefore.After(now) {
			next = Earlier(next, cmd.NotBefore)
		}
	}
	return next
}

// Later is the later of two times; a zero time is before any other.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Earlier is the earlier of two times; a zero time is never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
