package market

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Findings are facts for operators. The autoscaler takes no action because of findings. They include Nodes that
// differ from the template that Cluster Autoscaler received, pods that do not run on their virtual nodes, and objects
// of this hub that remain on providers. The worker that publishes the market collects the findings.
type Findings struct {
	Nodes []DifferentNode `json:"nodes,omitempty"`
	Left  []Left          `json:"left,omitempty"`
	// Pods describes the pods that are bound to a virtual node and do not run there.
	Pods []PodsWaiting `json:"pods,omitempty"`
	// Observer describes the rounds of the observer in the leading worker.
	Observer *Rounds `json:"observer,omitempty"`
	// Kept are the Nodes that are not removed because of volumes on their provider.
	Kept []KeptNode `json:"kept,omitempty"`
	// MoreNodes, MoreLeft and MorePods are the numbers of findings that are omitted from Nodes, Left and Pods.
	MoreNodes int `json:"moreNodes,omitempty"`
	MoreLeft  int `json:"moreLeft,omitempty"`
	MorePods  int `json:"morePods,omitempty"`
}

// KeptNode is a Node that is not removed because of volumes on its provider.
type KeptNode struct {
	Provider string `json:"provider"`
	Group    string `json:"group"`
	Node     string `json:"node"`
	// Claims is the number of bound PersistentVolumeClaims whose volume is on the provider. Claim is the first of
	// these claims, as namespace/name.
	Claims int    `json:"claims"`
	Claim  string `json:"claim"`
}

// For returns a text with the PersistentVolumeClaims because of which the Node is not removed.
func (k KeptNode) For() string {
	if k.Claims == 1 {
		return "claim " + k.Claim
	}
	return fmt.Sprintf("%d claims, such as %s", k.Claims, k.Claim)
}

// PodsWaiting describes pods that do not run, all for the same reason and on nodes of the same provider and node
// group.
type PodsWaiting struct {
	Provider string `json:"provider"`
	Group    string `json:"group"`
	// Verdict is the reason, as package boundpod defines it.
	Verdict string `json:"verdict"`
	// Count is the number of pods that have waited for more than a minute. Overdue is the number of pods that have
	// waited longer than the group's budgets.podStart.
	Count   int `json:"count"`
	Overdue int `json:"overdue,omitempty"`
	// Pod is the pod that has waited longest, as namespace/name. Since and Why belong to this pod.
	Pod   string    `json:"pod"`
	Since time.Time `json:"since"`
	Why   string    `json:"why"`
}

// Rounds describes the rounds of the observer. Its times are from the clock of the leading worker.
type Rounds struct {
	// Complete is the start of the last complete round, or zero before the first complete round.
	Complete time.Time `json:"complete,omitzero"`
	// Failed is the error of the last round; "" when it was complete.
	Failed string `json:"failed,omitempty"`
	// Unread is the number of node groups and providers that the last round could not read.
	Unread int `json:"unread,omitempty"`
	// Paused is true while an operator has paused the observer.
	Paused bool `json:"paused,omitempty"`
	// ClockAhead contains, for each other clock ("temporal" and "api-server"), the number of seconds by which the
	// leading worker's clock is ahead of that clock.
	ClockAhead map[string]int64 `json:"clockAhead,omitempty"`
}

// Left is an object of this hub that remains on a provider and has no counterpart in this cluster.
type Left struct {
	Provider string    `json:"provider"`
	Object   string    `json:"object"`
	Since    time.Time `json:"since"`
	// KeptBecause is the reason for which the object is not removed.
	KeptBecause string `json:"keptBecause,omitempty"`
}

// DifferentNode is a Ready Node that differs from the template that Cluster Autoscaler received for its group.
type DifferentNode struct {
	Node  string `json:"node"`
	Group string `json:"group"`
	// Differs is a text that describes the differences.
	Differs string `json:"differs"`
}

// Of returns the findings for which the function `keep` returns true. keep receives the group and the provider of a
// finding, or "" if one is unknown. If keep is nil, Of returns all findings. Otherwise Of sets MoreNodes and MorePods
// to zero, because it cannot call keep for the omitted findings.
func (f Findings) Of(keep func(group, provider string) bool) Findings {
	if keep == nil {
		return f
	}
	of := Findings{MoreLeft: f.MoreLeft, Observer: f.Observer}
	for _, l := range f.Left {
		if keep("", l.Provider) {
			of.Left = append(of.Left, l)
		}
	}
	for _, p := range f.Pods {
		if keep(p.Group, p.Provider) {
			of.Pods = append(of.Pods, p)
		}
	}
	for _, k := range f.Kept {
		if keep(k.Group, k.Provider) {
			of.Kept = append(of.Kept, k)
		}
	}
	for _, n := range f.Nodes {
		if keep(n.Group, "") {
			of.Nodes = append(of.Nodes, n)
		}
	}
	return of
}

// These constants bound the findings of each kind, so that the document stays small.
const (
	maxFindings = 50
	maxWords    = 300 // characters of one text
	// maxFindingsBytes bounds the size of the findings as JSON, because findings and offers (maxBytes) must fit into
	// one ConfigMap.
	maxFindingsBytes = 64 << 10
)

// cut limits the number of findings of each kind, the lengths of their texts, and their total size.
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

// first returns a copy of the first maxFindings findings, and the number of the omitted findings.
func first[T any](findings []T) (kept []T, more int) {
	n := min(len(findings), maxFindings)
	return slices.Clone(findings[:n]), len(findings) - n
}

func (f Findings) size() int {
	raw, _ := json.Marshal(f) // strings and numbers can always be marshalled
	return len(raw)
}

func brief(text string) string {
	if all := []rune(text); len(all) > maxWords {
		return string(all[:maxWords]) + "…"
	}
	return text
}
