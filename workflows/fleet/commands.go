package fleet

import (
	"slices"
	"time"
)

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
	case r.Outcome == OutcomeFailed && c.Open[n].Kind != CommandAsk: // a question is asked again anyway
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

// Earlier is the earlier of two times; a zero time is never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
