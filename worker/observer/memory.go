package observer

import (
	"context"
	"encoding/json"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
)

// Memory stores one document, which the next leader reads.
type Memory interface {
	// Load returns the document, and the time since it was saved. The same clock measures the time of the save and
	// the present time. Without a document Load returns nil and a negative age. Load may write to the store to learn
	// the store's current time.
	Load(ctx context.Context) (document []byte, age time.Duration, err error)
	// Read returns the document, or nil if no document exists. It writes nothing.
	Read(ctx context.Context) (document []byte, err error)
	// Save replaces the document.
	Save(ctx context.Context, document []byte) error
}

// remembersFor is the maximum age at which a new leader uses the previous leader's evidence about providers. If every
// leader started without evidence, leaders that each lead for a few minutes would never find a dead provider.
const remembersFor = 3 * time.Minute

// sweepRemembersFor is the maximum age at which a new leader uses the previous leader's sweeps.
const sweepRemembersFor = 3 * comparison.SweepEvery

// maxSaved bounds the size of the document, in bytes. A ConfigMap may have at most 1 MiB.
const maxSaved = 900 << 10

// state is the data that one round passes to the next.
type state struct {
	Round    fleet.RoundID      `json:"round"`
	Outlook  comparison.Outlook `json:"outlook,omitzero"`
	Sweep    comparison.Sweep   `json:"sweep,omitzero"`
	Differed []string           `json:"differed,omitempty"`
	// Groups and Providers name the entities that the next round reads. Offered is the provider with which the next
	// round continues the rotation through all offered providers.
	Groups    []string `json:"groups,omitempty"`
	Providers []string `json:"providers,omitempty"`
	Offered   string   `json:"offered,omitempty"`
	// Records holds, by name, the data that outlives the groups. Cordoned holds the providers that an operator has
	// cordoned. A new leader uses both at any age.
	Records  map[string]record `json:"records,omitempty"`
	Cordoned []string          `json:"cordoned,omitempty"`
	// Listed is the time at which the last complete round of any leader listed the objects; zero if unknown.
	Listed time.Time `json:"listed,omitzero"`
	// At is the time of the save, by the clock of the worker that saved. A reader on another machine uses only the
	// differences between the other times and At, because the clocks may differ.
	At time.Time `json:"at,omitzero"`

	first     bool      // this leader has not read the entities yet
	complete  int       // the number of this leader's complete rounds
	soon      bool      // the next round must start after soonAfter
	positions positions // the positions that groups have saved; only in the state that Records reads
}

// restore returns the state of a new leader: the saved state, without evidence that is too old. It converts the saved
// times to this machine's clock. If the saved state cannot be read, restore logs the error and returns an empty state.
func (o *Observer) restore(ctx context.Context) state {
	o.progress.lead()
	s := state{first: true}
	if o.Memory == nil {
		return s
	}
	document, age, err := o.Memory.Load(ctx)
	if err == nil && len(document) > 0 {
		err = json.Unmarshal(document, &s)
	}
	if err != nil {
		o.Logger.Warn("cannot read the saved state of the last observer; starting without it", "error", err)
		return state{first: true}
	}
	s.first, s.Round.Number = true, 0
	if age < 0 || age > remembersFor {
		s.Outlook = comparison.Outlook{}
	}
	if age < 0 || age > sweepRemembersFor {
		s.Sweep = comparison.Sweep{Next: s.Sweep.Next}
	}
	moved := time.Since(s.At) - age
	s.Outlook, s.Sweep = s.Outlook.Later(moved), s.Sweep.Later(moved)
	if age < 0 {
		s.Listed = time.Time{}
	} else if !s.Listed.IsZero() {
		s.Listed = s.Listed.Add(moved)
	}
	o.bills = bills{} // another leader may have saved more
	return s
}

// save saves the state. It logs an error; the next leader then starts with the state that was saved before.
func (o *Observer) save(ctx context.Context, s state) {
	if o.Memory == nil {
		return
	}
	s.At = time.Now()
	document, err := json.Marshal(s)
	if err == nil && len(document) > maxSaved {
		o.Logger.Warn("the observer's state is too large to be saved; a new leader starts without the evidence", "bytes",
			len(document))
		document, err = json.Marshal(state{Round: s.Round, Records: s.Records, Cordoned: s.Cordoned, Listed: s.Listed,
			At: s.At})
	}
	if err == nil {
		err = o.Memory.Save(ctx, document)
	}
	if err != nil && ctx.Err() == nil {
		o.Logger.Warn("cannot save the observer's state for the next leader", "error", err)
	}
}
