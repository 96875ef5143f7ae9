package fleet

import (
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// Command is an entity's request for work outside the entity. It is plain data, and one activity executes many
// commands. A command stays in the entity's state, also across continue-as-new, until its result arrives. Executing a
// command twice is harmless.
type Command struct {
	ID   int64       `json:"id"`
	Kind CommandKind `json:"kind"`
	// Instance and Generation identify a driver.
	Instance   string     `json:"instance,omitempty"`
	Generation Generation `json:"generation,omitzero"`
	Attempt    *Attempt   `json:"attempt,omitempty"`
	Order      *Order     `json:"order,omitempty"`
	Answer     *Answer    `json:"answer,omitempty"`
	// First, in a start, reports that no scale-out of the instance was ever started before.
	First bool `json:"first,omitempty"`
	// Driver names the kind of driver for a start, an order or an answer, or "unpeering" for a cancel.
	Driver DriverKind `json:"driver,omitempty"`
	// Instances lists the instances of a CommandDescribe or a CommandInspect.
	Instances []string `json:"instances,omitempty"`
	// Hold is a request to the provider with the id Provider.
	Provider string       `json:"provider,omitempty"`
	Hold     *HoldRequest `json:"hold,omitempty"`
	// NotBefore delays the execution; zero means immediately.
	NotBefore time.Time `json:"notBefore,omitzero"`
}

// CommandKind names the work of a Command.
type CommandKind string

// These are the kinds.
const (
	CommandStart     CommandKind = "start"     // start an instance's driver
	CommandUndo      CommandKind = "undo"      // start undo/<name>-<attempt>
	CommandOrder     CommandKind = "order"     // send an Order to a driver
	CommandAnswer    CommandKind = "answer"    // send a hold's state to its driver
	CommandDescribe  CommandKind = "describe"  // describe drivers, and list the objects of the closed ones
	CommandInspect   CommandKind = "inspect"   // list the objects of instances
	CommandRecover   CommandKind = "recover"   // list all existing objects
	CommandPeering   CommandKind = "peering"   // start peering/<id>
	CommandUnpeering CommandKind = "unpeering" // start unpeering/<id>
	CommandCancel    CommandKind = "cancel"    // cancel unpeering/<id>
	CommandHold      CommandKind = "hold"      // send a provider a request for a standby's hold
	CommandStandby   CommandKind = "standby"   // rank the providers to keep peered
	CommandRefusal   CommandKind = "refusal"   // read whether a provider still refuses us
	CommandSave      CommandKind = "save"      // save the group's position outside of Temporal
)

// Result reports the outcome of a Command. An entity that receives no result executes the command again.
type Result struct {
	ID      int64   `json:"id"`
	Outcome Outcome `json:"outcome"`
	Error   string  `json:"error,omitempty"`
	// Drivers is set in the result of a CommandDescribe.
	Drivers []DriverStatus `json:"drivers,omitempty"`
	// Empty reports that the list of the group's objects is completely empty.
	Empty bool `json:"empty,omitempty"`
	// Found is set in the results of a CommandInspect and a CommandRecover. Peering, LingerSeconds and Unpeer are set
	// in the result of a provider's CommandRecover.
	Found         Founds       `json:"found,omitempty"`
	Peering       *Provider    `json:"peering,omitempty"`
	LingerSeconds *int64       `json:"lingerSeconds,omitempty"`
	Unpeer        UnpeerPolicy `json:"unpeer,omitempty"`
	// Paused is set in the result of a group's CommandRecover. It reports whether the group was paused when the
	// observer last saved the group's state; nil when the observer has saved nothing about the group.
	Paused *bool `json:"paused,omitempty"`
	// Bill is set in the result of a group's CommandRecover. It is the last bill of the group that the observer saved;
	// nil when the observer has saved no bill.
	Bill *money.Bill `json:"bill,omitempty"`
	// Cordoned reports that the provider was cordoned when its previous workflow ended.
	Cordoned bool `json:"cordoned,omitempty"`
	// Refusing is set in the result of a CommandRefusal; nil means that the provider no longer refuses.
	Refusing *ProviderRefusal `json:"refusing,omitempty"`
	// Standby is set in the result of a ranking of standbys.
	Standby []StandbyRow `json:"standby,omitempty"`
}

// Outcome names the way in which a command ended.
type Outcome string

// These are the outcomes.
const (
	OutcomeDone           Outcome = "done"
	OutcomeAlreadyStarted Outcome = "alreadyStarted" // a workflow with this id runs, or has completed
	OutcomeNotRunning     Outcome = "notRunning"     // the target is closed, and did not complete
	OutcomeCompleted      Outcome = "completed"      // the target completed: its last view was delivered
	OutcomeFailed         Outcome = "failed"         // the delivery failed; send it again
)

// DriverStatus describes the state of one driver.
type DriverStatus struct {
	Instance string `json:"instance"`
	// Running reports that the driver's workflow is open. Failing reports that the workflow's task has failed
	// repeatedly for ten minutes.
	Running bool `json:"running,omitempty"`
	Failing bool `json:"failing,omitempty"`
	// Completed reports that the driver's workflow is closed and that the driver's last view was delivered.
	Completed bool `json:"completed,omitempty"`
	// Found describes the objects of the instance's newest attempt, when the driver is not running.
	Found *Found `json:"found,omitempty"`
}

// Commands contains an entity's open commands, oldest first. A command is open until its result has arrived.
type Commands struct {
	Last int64     `json:"last,omitempty"`
	Open []Command `json:"open,omitempty"`
}

// Add gives the command the next id, and adds it to the open commands.
func (c *Commands) Add(cmd Command) {
	c.Last++
	cmd.ID = c.Last
	c.Open = append(c.Open, cmd)
}

// Find returns the open command with this id, or nil.
func (c *Commands) Find(id int64) *Command {
	n := slices.IndexFunc(c.Open, func(cmd Command) bool { return cmd.ID == id })
	if n < 0 {
		return nil
	}
	return &c.Open[n]
}

// Ended removes the command to which the result belongs, and returns the command. It returns nil if the command is not
// open. It also returns nil if the command has failed and will be executed again.
func (c *Commands) Ended(r Result, now time.Time) *Command {
	n := slices.IndexFunc(c.Open, func(cmd Command) bool { return cmd.ID == r.ID })
	switch {
	case n < 0:
		return nil
	case r.Outcome == OutcomeFailed && c.Open[n].Kind != CommandRefusal: // a refusal check is repeated anyway
		c.Open[n].NotBefore = now.Add(c.Open[n].Kind.retryAfter())
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

// Drop removes every command that match accepts.
func (c *Commands) Drop(match func(Command) bool) { c.Open = slices.DeleteFunc(c.Open, match) }

// retryAfter returns the pause before a failed command of this kind is executed again. A position is saved again after
// a longer pause: while the consumer's API server does not answer, each try would be a billed action.
func (k CommandKind) retryAfter() time.Duration {
	if k == CommandSave {
		return 30 * time.Second
	}
	return 2 * time.Second
}

// Due returns the time at which the first delayed command may run; zero when no command is delayed.
func (c *Commands) Due(now time.Time) time.Time {
	var next time.Time
	for _, cmd := range c.Open {
		if cmd.NotBefore.After(now) {
			next = Earlier(next, cmd.NotBefore)
		}
	}
	return next
}

// Later returns the later of two times; a zero time is before any other.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Earlier returns the earlier of two times; a zero time means never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
