package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Instance is the output document that describes the state and the history of an instance.
type Instance struct {
	Name  string `json:"name"`
	Group string `json:"group,omitempty"`
	// Phase is Released when the group no longer lists the instance.
	Phase    fleet.Phase    `json:"phase"`
	Since    time.Time      `json:"since,omitzero"`
	Provider string         `json:"provider,omitempty"`
	Node     string         `json:"node,omitempty"`
	Attempt  int            `json:"attempt,omitempty"`
	Failure  *fleet.Failure `json:"failure,omitempty"`
	Stuck    string         `json:"stuck,omitempty"`
	NotReady bool           `json:"notReady,omitempty"`
	// Waits is the event for which the present step of the instance waits.
	Waits string `json:"waits,omitempty"`
	// TriggeredBy contains pods for which Cluster Autoscaler requested the instance. MoreTriggers is the number of omitted
	// pods.
	TriggeredBy  []Trigger `json:"triggeredBy,omitempty"`
	MoreTriggers int       `json:"moreTriggers,omitempty"`
	// Notes name the inputs that could not be read. The explanation does not consider them.
	Notes []string `json:"notes,omitempty"`
	// DataFrom is the time of the oldest record. Older records may be missing, because Temporal deletes the histories of
	// closed workflows after the retention period.
	DataFrom time.Time `json:"dataFrom,omitzero"`
	Records  []Record  `json:"records"`
}

// OfInstance combines an instance's entry in its group's snapshot with the records of the instance's workflows. The
// parameter view is nil if no group lists the instance any longer.
func OfInstance(name, group string, view *fleet.InstanceView, waits string, records []Record) Instance {
	i := Instance{Name: name, Group: group, Phase: fleet.Released, Waits: waits, Records: slices.Clone(records)}
	if v := view; v != nil {
		i.Phase, i.Since, i.Provider, i.Attempt = v.Phase, v.Since.UTC(), v.Provider, v.Attempt
		i.Failure, i.Stuck, i.NotReady = v.Failure, v.Stuck, v.NotReady
		if v.Attempt > 0 {
			i.Node = fleet.ObjectName(name, v.Attempt)
		}
	}
	slices.SortStableFunc(i.Records, func(a, b Record) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Workflow, b.Workflow))
	})
	if len(i.Records) > 0 {
		i.DataFrom = i.Records[0].At
	} else {
		i.Records = []Record{}
	}
	return i
}

// state describes the instance in a sentence.
func (i Instance) state() string {
	text := string(i.Phase)
	if i.Provider != "" {
		text += fmt.Sprintf(", attempt %d on %s", i.Attempt, i.Provider)
	}
	switch {
	case i.Stuck != "":
		text += ", stuck: " + i.Stuck
	case i.Failure != nil:
		text += fmt.Sprintf(", %s: %s", i.Failure.Code, i.Failure.Message)
	case i.NotReady:
		text += ", its node is not ready"
	case i.Waits != "":
		text += ", waiting for " + i.Waits
	}
	return text
}

// Trigger is a pod for which Cluster Autoscaler requested nodes.
type Trigger struct {
	Pod     string    `json:"pod"`
	At      time.Time `json:"at"`
	Message string    `json:"message"`
}
