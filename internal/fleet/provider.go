package fleet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CloseAfter is how long a provider that is of no use any longer keeps its workflow.
const CloseAfter = 24 * time.Hour

// ProviderSnapshot is what a provider publishes in its memo.
type ProviderSnapshot struct {
	ID       string `json:"id"`
	Revision int64  `json:"revision"`
	// Term is that of the observer whose rounds the provider has last taken.
	Term    int64        `json:"term,omitempty"`
	Phase   PeeringPhase `json:"phase"`
	Run     int          `json:"run,omitempty"`
	Since   time.Time    `json:"since"`
	Offer   *Offer       `json:"offer,omitempty"`
	Failure *Failure     `json:"failure,omitempty"`
	// Refusing is the provider's no, while it is in force.
	Refusing *ProviderRefusal `json:"refusing,omitempty"`
	// Free is what the offer has left; nil without an offer.
	Free corev1.ResourceList `json:"free"`
	// KeepUntil is until when the peering is not removed.
	KeepUntil time.Time `json:"keepUntil,omitzero"`
	// Holds are the keys of the attempts' live ones, in order; Waiting of those that wait.
	Holds   []string `json:"holds,omitempty"`
	Waiting []string `json:"waiting,omitempty"`
	// Standby says by key what became of the standbys' holds.
	Standby map[string]HoldState `json:"standby,omitempty"`
	// Standing is what the observer has found wrong with the provider.
	Standing Standing `json:"standing,omitzero"`
	// Recovering: the entity is listing what exists. Whether it is cordoned is not known before.
	Recovering bool `json:"recovering,omitempty"`
	// Cordoned is since when an operator wants nothing new there; zero: nobody does.
	Cordoned time.Time `json:"cordoned,omitzero"`
	At       time.Time `json:"at"`
}

// Over reports whether that run of peering/<id> or unpeering/<id> is one that the provider no longer waits for.
// Executed late, or once more, it would otherwise remove a peering that has been made since.
func (s ProviderSnapshot) Over(run int) bool { return s.Run > run }

// PeeringReport is what peering/<id> and unpeering/<id> tell a provider at their end.
type PeeringReport struct {
	Run     int          `json:"run"`
	Event   PeeringEvent `json:"event"`
	Failure *Failure     `json:"failure,omitempty"`
	// Refusing: the provider refuses us. With the event done it is what unpeering/<id> had to leave.
	Refusing *ProviderRefusal `json:"refusing,omitempty"`
}

// PeeringInput starts peering/<id> or unpeering/<id>.
type PeeringInput struct {
	Provider Provider `json:"provider"`
	Run      int      `json:"run"`
	// Budget bounds peering/<id> without its network; 0 means EstablishBound.
	Budget metav1.Duration `json:"budget,omitzero"`
	// NetworkBudget bounds its network; 0 means NetworkBound.
	NetworkBudget metav1.Duration `json:"networkBudget,omitzero"`
}
