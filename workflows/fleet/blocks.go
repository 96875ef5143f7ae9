package fleet

import (
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/money"
)

// Notice is what the gRPC server, which alone reads the config, says of a group. It is for people: nothing decides by
// it. The zero value is that there is nothing to say.
type Notice struct {
	// Name is one of the Block names.
	Name    string `json:"name"`
	Message string `json:"message"`
}

// Names of what keeps a group from growing, or from being as it is configured.
const (
	BlockPaused           = "Paused"           // an operator paused the group
	BlockAtMax            = "AtMax"            // its target size is its max
	BlockSpendingLimit    = "SpendingLimit"    // a node would cost more than the group may spend
	BlockChangeNotInForce = "ChangeNotInForce" // its configured shape, labels or taints are not those of its nodes
	BlockRetired          = "Retired"          // it is not configured any more, and only shrinks
	BlockBuildFails       = "BuildFails"       // see Snapshot.Condition
)

// Conditions are all that people are to know of the group: why it starts no instance that costs more an hour, and what
// is wrong with it or its config.
func (s Snapshot) Conditions(more money.Money, now time.Time) (all []Notice) {
	for _, n := range []Notice{s.Blocked(more, now), s.Notice, {BlockBuildFails, s.Condition}} {
		if n.Message != "" {
			all = append(all, n)
		}
	}
	return all
}

// Blocked is why the group itself starts no instance that costs more an hour; the zero value when it may. It knows
// nothing of offers and of limits of all groups.
func (s Snapshot) Blocked(more money.Money, now time.Time) Notice {
	switch {
	case s.Paused:
		return Notice{BlockPaused, "it is paused: liqo-autoscaler resume group " + s.Group}
	case s.Spec == nil:
		return Notice{}
	case s.Target >= s.Max:
		return Notice{BlockAtMax, fmt.Sprintf("its target size %d is its max", s.Target)}
	}
	if why := s.Spec.Spending.Refuses(s.Cost, more, now); why != "" {
		return Notice{BlockSpendingLimit, why}
	}
	return Notice{}
}
