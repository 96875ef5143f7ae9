package fleet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CloseAfter is the time for which an unused provider keeps its workflow.
const CloseAfter = 24 * time.Hour

// ProviderSnapshot is the state that a provider publishes in its memo.
type ProviderSnapshot struct {
	ID       string `json:"id"`
	Revision int64  `json:"revision"`
	// Term is the term of the observer whose round the provider has processed last.
	Term    int64        `json:"term,omitempty"`
	Phase   PeeringPhase `json:"phase"`
	Run     int          `json:"run,omitempty"`
	Since   time.Time    `json:"since"`
	Offer   *Offer       `json:"offer,omitempty"`
	Failure *Failure     `json:"failure,omitempty"`
	// Refusing is the provider's refusal while it is in effect; nil without one.
	Refusing *ProviderRefusal `json:"refusing,omitempty"`
	// Free contains the remaining capacity of the offer; nil without an offer.
	Free corev1.ResourceList `json:"free"`
	// KeepUntil is the time before which the peering is not removed.
	KeepUntil time.Time `json:"keepUntil,omitzero"`
	// Holds lists the sorted keys of the attempts' holds that wait or are granted. Waiting lists the keys of the
	// waiting holds.
	Holds   []string `json:"holds,omitempty"`
	Waiting []string `json:"waiting,omitempty"`
	// Standby maps the keys of the standbys' holds to their states.
	Standby map[string]HoldState `json:"standby,omitempty"`
	// Standing describes the faults of the provider that the observer has found.
	Standing Standing `json:"standing,omitzero"`
	// Recovering reports that the entity is listing the existing objects. Until the list arrives, Cordoned is not known.
	Recovering bool `json:"recovering,omitempty"`
	// Cordoned is the time of the operator's cordon, or zero without one.
	Cordoned time.Time `json:"cordoned,omitzero"`
	At       time.Time `json:"at"`
}

// Over reports whether the provider no longer waits for the given run of peering/<id> or unpeering/<id>. Such a run
// must do nothing: a run that is executed late or twice could remove a newer peering.
func (s ProviderSnapshot) Over(run int) bool { return s.Run > run }

// PeeringReport is the report that peering/<id> or unpeering/<id> sends to its provider at its end.
type PeeringReport struct {
	Run     int          `json:"run"`
	Event   PeeringEvent `json:"event"`
	Failure *Failure     `json:"failure,omitempty"`
	// Refusing reports that the provider refuses this cluster. In a report with the event done, it describes the
	// objects that unpeering/<id> had to keep.
	Refusing *ProviderRefusal `json:"refusing,omitempty"`
}

// PeeringInput is the input of peering/<id> and unpeering/<id>.
type PeeringInput struct {
	Provider Provider `json:"provider"`
	Run      int      `json:"run"`
	// Budget bounds the duration of peering/<id>, not including the setup of the network; 0 means EstablishBound.
	Budget metav1.Duration `json:"budget,omitzero"`
	// NetworkBudget bounds the setup of the network; 0 means NetworkBound.
	NetworkBudget metav1.Duration `json:"networkBudget,omitzero"`
}
