package market

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Findings are the Nodes that differ from the template that Cluster Autoscaler was given, the pods that do not run on
// their virtual nodes, and our objects that are left on providers. The worker that publishes the market finds them.
// They are for people, and decide nothing.
type Findings struct {
	Nodes []DifferentNode `json:"nodes,omitempty"`
	Left  []Left          `json:"left,omitempty"`
	// Pods are pods that have a virtual node and do not run there.
	Pods []PodsWaiting `json:"pods,omitempty"`
	// Observer is how the rounds of the worker that leads go.
	Observer *Rounds `json:"observer,omitempty"`
	// Kept are the Nodes that stay for the volumes of their provider.
	Kept []KeptNode `json:"kept,omitempty"`
	// MoreNodes, MoreLeft and MorePods are how many were left out.
	MoreNodes int `json:"moreNodes,omitempty"`
	MoreLeft  int `json:"moreLeft,omitempty"`
	MorePods  int `json:"morePods,omitempty"`
}

// KeptNode is a Node that stays for the volumes of its provider.
type KeptNode struct {
	Provider string `json:"provider"`
	Group    string `json:"group"`
	Node     string `json:"node"`
	// Claims is the number of bound claims with a volume there, and Claim the first, as namespace/name.
	Claims int    `json:"claims"`
	Claim  string `json:"claim"`
}

// For says for which claims the Node stays, to people.
func (k KeptNode) For() string {
	if k.Claims == 1 {
		return "claim " + k.Claim
	}
	return fmt.Sprintf("%d claims, such as %s", k.Claims, k.Claim)
}

// PodsWaiting are pods of one provider and node group that do not run, for one reason.
type PodsWaiting struct {
	Provider string `json:"provider"`
	Group    string `json:"group"`
	// Verdict is one of package boundpod.
	Verdict string `json:"verdict"`
	// Count is the number of pods that have not run for a minute, Overdue for the group's budgets.podStart.
	Count   int `json:"count"`
	Overdue int `json:"overdue,omitempty"`
	// Pod is the pod that waits longest, as namespace/name; Since and Why are about it.
	Pod   string    `json:"pod"`
	Since time.Time `json:"since"`
	Why   string    `json:"why"`
}

// Rounds is how the rounds of the observer go, by the clock of the worker that leads.
type Rounds struct {
	// Complete is when the last complete round began; zero when there was none.
	Complete time.Time `json:"complete,omitzero"`
	// Failed is why the last round failed; "" when it was complete.
	Failed string `json:"failed,omitempty"`
	// Unread is how many node groups and providers the last round could not read.
	Unread int `json:"unread,omitempty"`
	// Paused: an operator has paused the observer.
	Paused bool `json:"paused,omitempty"`
	// ClockAhead is how many seconds the clock of that worker is ahead of other clocks, by whose they are: temporal,
	// api-server.
	ClockAhead map[string]int64 `json:"clockAhead,omitempty"`
}

// Left is what is ours on a provider and has no counterpart here.
type Left struct {
	Provider string    `json:"provider"`
	Object   string    `json:"object"`
	Since    time.Time `json:"since"`
	// KeptBecause is why it is not removed.
	KeptBecause string `json:"keptBecause,omitempty"`
}

// DifferentNode is a Ready Node that is not as Cluster Autoscaler was told by its group's template.
type DifferentNode struct {
	Node  string `json:"node"`
	Group string `json:"group"`
	// Differs is in what, for people.
	Differs string `json:"differs"`
}

// Of are the findings of some groups, by id; of all when none is named. What was left out is then not known.
func (f Findings) Of(groups []string) Findings {
	if len(groups) == 0 {
		return f
	}
	of := Findings{Left: f.Left, MoreLeft: f.MoreLeft, Observer: f.Observer}
	for _, p := range f.Pods {
		if slices.Contains(groups, p.Group) {
			of.Pods = append(of.Pods, p)
		}
	}
	for _, k := range f.Kept {
		if slices.Contains(groups, k.Group) {
			of.Kept = append(of.Kept, k)
		}
	}
	for _, n := range f.Nodes {
		if slices.Contains(groups, n.Group) {
			of.Nodes = append(of.Nodes, n)
		}
	}
	return of
}

// Bounds of what is published of each kind of finding, so that the document stays small.
const (
	maxFindings = 50
	maxWords    = 300 // characters of one text
	// maxFindingsBytes, as JSON, beside maxBytes of offers: both are to fit into a ConfigMap.
	maxFindingsBytes = 64 << 10
)

// cut keeps the first findings, and what is short of each.
func (f Findings) cut() Findings {
	f.Nodes, f.MoreNodes = first(f.Nodes)
	f.Left, f.MoreLeft = first(f.Left)
	f.Pods, f.MorePods = first(f.Pods)
	f.Kept, _ = first(f.Kept)
	if f.Observer != nil {
		f.Observer.Failed = brief(f.Observer.Failed)
	}
	for n := range f.Nodes {
		f.Nodes[n].Differs = brief(f.Nodes[n].Differs)
	}
	for n := range f.Pods {
		f.Pods[n].Pod, f.Pods[n].Why = brief(f.Pods[n].Pod), brief(f.Pods[n].Why)
	}
	for n := range f.Left {
		f.Left[n].Object = brief(f.Left[n].Object)
	}
	for f.size() > maxFindingsBytes {
		if left := len(f.Left); left > 0 {
			f.Left, f.MoreLeft = f.Left[:left-1], f.MoreLeft+1
			continue
		}
		if pods := len(f.Pods); pods > 0 {
			f.Pods, f.MorePods = f.Pods[:pods-1], f.MorePods+1
			continue
		}
		f.Nodes, f.MoreNodes = f.Nodes[:len(f.Nodes)-1], f.MoreNodes+1
	}
	return f
}

// first are a copy of the first findings, which are the finders', and how many there are more.
func first[T any](findings []T) (kept []T, more int) {
	n := min(len(findings), maxFindings)
	return slices.Clone(findings[:n]), len(findings) - n
}

func (f Findings) size() int {
	raw, _ := json.Marshal(f) // strings and numbers, which cannot fail
	return len(raw)
}

func brief(text string) string {
	if all := []rune(text); len(all) > maxWords {
		return string(all[:maxWords]) + "…"
	}
	return text
}
