package observer

import (
	"context"
	"encoding/json"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
)

// Memory keeps one document for the next leader.
type Memory interface {
	// Load returns the document, and the time since it was saved, measured by one clock. Without a document it returns nil
	// and a negative age.
	Load(ctx context.Context) (document []byte, age time.Duration, err error)
	// Read returns the document alone, and writes nothing; nil without a document.
	Read(ctx context.Context) (document []byte, err error)
	Save(ctx context.Context, document []byte) error
}

// remembersFor is the largest age of another leader's evidence that is used. Without that evidence, leaders that each
// live for a few minutes would never find a dead provider.
const remembersFor = 3 * time.Minute

// sweepRemembersFor is the same for the sweeps, which are five minutes apart.
const sweepRemembersFor = 3 * comparison.SweepEvery

// mostSaved bounds the document: a ConfigMap takes 1 MiB.
const mostSaved = 900 << 10

// state is the data that one round passes to the next.
type state struct {
	Round    fleet.RoundID      `json:"round"`
	Outlook  comparison.Outlook `json:"outlook,omitzero"`
	Sweep    comparison.Sweep   `json:"sweep,omitzero"`
	Differed []string           `json:"differed,omitempty"`
	// Groups and Providers are the names that the next round reads. Offered is the provider with which the rotation of all
	// other offered providers continues.
	Groups    []string `json:"groups,omitempty"`
	Providers []string `json:"providers,omitempty"`
	Offered   string   `json:"offered,omitempty"`
	// Records holds, by name, the data that outlives the groups, and Cordoned the providers that an operator has cordoned.
	// They count at any age.
	Records  map[string]record `json:"records,omitempty"`
	Cordoned []string          `json:"cordoned,omitempty"`
	// Listed is the time at which the last complete round of any leader listed the objects; zero when that is not known.
	Listed time.Time `json:"listed,omitzero"`
	// At is the time of the save, by the clock of the worker that saved. At is the time of the save, by the clock of the
	// worker that saved. The reader takes every other time as an age before At.
	At time.Time `json:"at,omitzero"`

	first    bool // no round of this leader has read anything yet
	complete int  // the complete rounds of this leader
	soon     bool // the next round must come soon
}

// restore returns the state of a new leader: the saved state, without evidence that is too old.
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
		o.Logger.Warn("what the last observer knew cannot be read; this one begins without it", "error", err)
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

// save saves the state. If the document cannot be written, the next leader begins without it.
func (o *Observer) save(ctx context.Context, s state) {
	if o.Memory == nil {
		return
	}
	s.At = time.Now()
	document, err := json.Marshal(s)
	if err == nil && len(document) > mostSaved {
		o.Logger.Warn("what the observer knows is too large to be saved; a new leader begins without the evidence", "bytes",
			len(document))
		document, err = json.Marshal(state{Round: s.Round, Records: s.Records, Cordoned: s.Cordoned, Listed: s.Listed,
			At: s.At})
	}
	if err == nil {
		err = o.Memory.Save(ctx, document)
	}
	if err != nil && ctx.Err() == nil {
		o.Logger.Warn("what the observer knows cannot be saved for the next one", "error", err)
	}
}
