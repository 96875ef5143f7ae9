package show

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/natsort"
)

// Status is the output document of `status`. It contains the node groups, sorted by name, and their instances. The
// instances of a group are sorted by age, the oldest first.
type Status struct {
	Groups    []Group    `json:"groups"`
	Instances []Instance `json:"instances"`
	// Standby are the peerings that groups keep ready.
	Standby []Standby `json:"standby,omitempty"`
	// Conditions are the faults of providers.
	Conditions []Condition `json:"conditions,omitempty"`
	// Refusing are the providers that refuse this cluster, by id.
	Refusing []Refusing `json:"refusing,omitempty"`
	// Findings are the findings of the worker. They are empty when the market was not read.
	Findings market.Findings `json:"findings,omitzero"`

	// selected is true if groups without a selected instance were omitted.
	selected bool
}

// Standby is a peering that a group keeps ready for future nodes. While the peering is being created, State is
// "waiting".
type Standby struct {
	Provider string          `json:"provider"`
	Group    string          `json:"group"`
	State    fleet.HoldState `json:"state"`
	Since    time.Time       `json:"since"`
}

// Refusing is a provider that refuses this cluster.
type Refusing struct {
	Provider string    `json:"provider"`
	Since    time.Time `json:"since"`
	fleet.ProviderRefusal
}

// RefusingOf returns the providers that refuse this cluster.
func RefusingOf(providers []fleet.ProviderSnapshot) (refusing []Refusing) {
	for _, p := range providers {
		if p.Refusing != nil {
			refusing = append(refusing, Refusing{Provider: p.ID, Since: p.Since.UTC(), ProviderRefusal: *p.Refusing})
		}
	}
	slices.SortFunc(refusing, func(a, b Refusing) int { return natsort.Compare(a.Provider, b.Provider) })
	return refusing
}

// Group is one node group.
type Group struct {
	Name string `json:"name"`
	Min  int    `json:"min"`
	Max  int    `json:"max"`
	// Target is the number of instances that count towards the target size. CA receives this number.
	Target int `json:"target"`
	// Ready, NotReady, Creating, Deleting and Failed count the instances. Each instance is counted once.
	Ready    int  `json:"ready"`
	NotReady int  `json:"notReady"`
	Creating int  `json:"creating"`
	Deleting int  `json:"deleting"`
	Failed   int  `json:"failed"`
	Paused   bool `json:"paused"`
	// Spec is the hash of the spec that the group uses now. Shape contains the resources of each node of this spec.
	Spec  string              `json:"spec"`
	Shape corev1.ResourceList `json:"shape,omitempty"`
	// Epoch and Revision identify the snapshot from which this entry was made. AsOf is the time of the snapshot.
	Epoch    string    `json:"epoch"`
	Revision int64     `json:"revision"`
	AsOf     time.Time `json:"asOf"`
	// Started is the time at which the group was created, or zero if it is unknown.
	Started time.Time `json:"started,omitzero"`
	// Cost contains the costs of the group's nodes. It is nil before the group is configured.
	Cost *Cost `json:"cost,omitempty"`
	// Conditions are the reasons for which the group cannot grow, or for which it differs from its configuration.
	Conditions []fleet.GroupNotice `json:"conditions,omitempty"`
}

// Instance is one instance of a node group.
type Instance struct {
	Name  string `json:"name"`
	ID    string `json:"id"` // the Node's spec.providerID
	Group string `json:"group"`
	// Phase is the phase of the instance. State is the state that CA receives: creating, running or deleting.
	Phase fleet.Phase `json:"phase"`
	State fleet.State `json:"state,omitempty"`
	// Counts reports whether the instance counts towards the target size.
	Counts bool `json:"counts"`
	// Provider is the Liqo cluster id of the provider in the current attempt. Node is the name that the instance's
	// Node has or will have.
	Provider   string         `json:"provider,omitempty"`
	Attempt    int            `json:"attempt"`
	Node       string         `json:"node,omitempty"`
	Since      time.Time      `json:"since"` // when the instance entered Phase
	Registered bool           `json:"registered"`
	NotReady   bool           `json:"notReady"`
	Stuck      string         `json:"stuck,omitempty"`
	Failure    *fleet.Failure `json:"failure,omitempty"`
	// Waits is the event for which the present step waits, if the step has reported it.
	Waits string `json:"waits,omitempty"`
	// Condition is the name of a fault of the instance's provider, or "".
	Condition string `json:"condition,omitempty"`
	// PerHour is the hourly price of the instance while it has a slice on the provider. It is 0 if the offer has no
	// price.
	PerHour float64 `json:"perHour,omitempty"`
}

// StatusOf returns the status of the snapshots, sorted by group name. It compares spending limits with the costs of
// these groups and of the ended groups that share their accounts.
func StatusOf(ended []money.Spent, snapshots ...fleet.Snapshot) Status {
	snapshots = slices.Clone(snapshots)
	slices.SortFunc(snapshots, func(a, b fleet.Snapshot) int { return natsort.Compare(a.Group, b.Group) })
	out := Status{Groups: []Group{}, Instances: []Instance{}}
	var at time.Time
	for _, s := range snapshots {
		at = fleet.Later(at, s.Cost.At)
	}
	for _, s := range snapshots {
		out.Groups = append(out.Groups, groupOf(s, s.Balance(snapshots, ended, at)))
		for _, h := range s.Standby {
			out.Standby = append(out.Standby, Standby{Provider: h.Provider, Group: s.Group, State: h.State,
				Since: h.Since.UTC()})
		}
		for _, v := range s.Instances {
			out.Instances = append(out.Instances, InstanceOf(s.Group, v))
		}
	}
	return out
}

// With adds the faults of providers. It also marks the instances on these providers.
func (s Status) With(providers []fleet.ProviderSnapshot) Status {
	for _, p := range providers {
		if c := cordonOf(p); c != nil {
			s.Conditions = append(s.Conditions, *c)
		}
		c := conditionOf(p)
		if c == nil {
			continue
		}
		s.Conditions = append(s.Conditions, *c)
		for n := range s.Instances {
			if s.Instances[n].Provider == p.ID {
				s.Instances[n].Condition = c.Name
			}
		}
	}
	return s
}

// Priced adds a condition to each group whose spending limits do not permit a node on the cheapest offer. If the
// offers are unknown, it adds the condition only to groups that have used up a limit.
func (s Status) Priced(snapshots []fleet.Snapshot, ended []money.Spent, offers []choice.Candidate,
	now time.Time) Status {
	for _, snapshot := range snapshots {
		if snapshot.Spec == nil || snapshot.Spec.Spending == nil {
			continue
		}
		spec := *snapshot.Spec
		verdicts := choice.Choose(spec.InstanceSpec, offers, nil, choice.Rank{Name: spec.ID}, now).Assessments
		for n := range s.Groups {
			if s.Groups[n].Name == snapshot.Group {
				balance := snapshot.Balance(snapshots, ended, now)
				s.Groups[n].Conditions = snapshot.Conditions(balance, choice.Cheapest(verdicts))
			}
		}
	}
	return s
}

func groupOf(s fleet.Snapshot, b money.Balance) Group {
	g := Group{
		Name: s.Group, Min: s.Min, Max: s.Max, Target: s.Target, Paused: s.Paused, Spec: s.SpecHash,
		Epoch: s.Epoch, Revision: s.Revision, AsOf: s.At.UTC(), Cost: costOf(s, b),
		Conditions: s.Conditions(b, 0),
	}
	if s.Notice.Name == fleet.BlockRetired {
		g.Max = s.Target
	}
	g.Started, _ = fleet.EpochTime(s.Epoch)
	if s.Spec != nil {
		g.Shape = s.Spec.Shape
	}
	for _, v := range s.Instances {
		switch {
		case v.State == fleet.StateDeleting:
			g.Deleting++
		case v.Phase == fleet.Failed:
			g.Failed++
		case v.Phase == fleet.Ready && v.NotReady:
			g.NotReady++
		case v.Phase == fleet.Ready:
			g.Ready++
		default:
			g.Creating++
		}
	}
	return g
}

// InstanceOf returns the entry of one instance of a group.
func InstanceOf(group string, v fleet.InstanceView) Instance {
	i := Instance{
		Name: v.Name, ID: v.ID(group), Group: group, Phase: v.Phase, State: v.State, Counts: v.Counts, Provider: v.Provider,
		Attempt: v.Attempt, Since: v.Since.UTC(), Registered: v.Registered, NotReady: v.NotReady, Stuck: v.Stuck,
		Failure: v.Failure, PerHour: v.Price.Float(),
	}
	if v.Attempt > 0 {
		i.Node = fleet.ObjectName(v.Name, v.Attempt)
	}
	return i
}

// NotReady is the phase that outputs show for an instance that is Ready but whose Node is not ready.
const NotReady = "NotReady"

// Shown returns the phase as tables show it.
func (i Instance) Shown() string {
	if i.Phase == fleet.Ready && i.NotReady {
		return NotReady
	}
	return string(i.Phase)
}

func (i Instance) whyNotReady() string {
	if i.Condition != "" {
		return "node is not ready, provider: " + i.Condition
	}
	return "node is not ready"
}

// Why describes the fault of the instance in a few words, or returns "" if it has no fault.
func (i Instance) Why() string {
	switch {
	case i.Stuck != "":
		return "stuck: " + i.Stuck
	case i.Failure != nil:
		return string(i.Failure.Code) + ": " + i.Failure.Message
	case i.NotReady:
		return i.whyNotReady()
	case !i.Counts && i.State == fleet.StateDeleting && i.Phase != fleet.Draining && i.Phase != fleet.Unpeering:
		return "deletion requested"
	case i.Waits != "":
		return i.Waits
	case i.Phase == fleet.Joining && i.Registered:
		return "node is registered"
	}
	return ""
}
