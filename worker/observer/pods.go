package observer

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/boundpod"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/logonce"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// These constants bound the handling of pods that do not run.
const (
	// podsBound limits the time for which a round lists pods.
	podsBound = 20 * time.Second
	// A pod that does not run is counted when the observer first found it podSettles ago.
	podSettles = time.Minute
	// podsKept bounds the number of pods for which the time of the first finding is stored.
	podsKept = 20_000
	// podWords bounds the text about one pod, in characters.
	podWords = 300
	// A result is valid for the time podsLast. After that another worker may lead and have a newer result.
	podsLast = 3 * time.Minute
)

// PodsWaiting describes pods that are bound to a virtual node and do not run there. All its pods have the same
// provider, node group and verdict.
type PodsWaiting struct {
	Provider, Group string
	Verdict         boundpod.Verdict
	// Count is the number of pods that have not run for a minute. Overdue is the number of pods that have not run for
	// the time budgets.podStart of the group.
	Count, Overdue int
	// Pod is the longest waiting pod, as namespace/name. Since is the time at which this observer first found the pod
	// waiting, and Why is the reason.
	Pod, Why string
	Since    time.Time
}

// Pods stores the result of the last list of pods in this process. The zero value is ready for use, Set on nil does
// nothing, and Pods is safe for concurrent use.
type Pods struct {
	mu   sync.Mutex
	rows []PodsWaiting
	at   time.Time
}

// Set replaces the result. On a nil Pods it does nothing.
func (p *Pods) Set(rows []PodsWaiting, now time.Time) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows, p.at = rows, now
}

// Waiting returns the last result; known is false when this process has no result of the last three minutes.
func (p *Pods) Waiting(now time.Time) (rows []PodsWaiting, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.IsZero() || now.Sub(p.at) > podsLast {
		return nil, false
	}
	return slices.Clone(p.rows), true
}

// podsSeen holds the data of earlier rounds about pods that do not run.
type podsSeen struct {
	since map[types.UID]time.Time // the time at which a pod was first found not running
	fails logonce.LastError       // the last logged error of the list of pods
	// volumes is the last logged error of the list of volumes.
	volumes logonce.LastError
}

// virtualNode holds the pods and the quota of an instance's node.
type virtualNode struct {
	provider, group string
	podStart        time.Duration
	room            corev1.ResourceList // the node's quota
	ended           []share             // ended pods that their Jobs have counted
	unaccepted      []share             // pods that the provider has not accepted
	live, held      corev1.ResourceList // the requests of accepted pods: of pods that have not ended, and of ended pods
}

// watchPods lists the pods that Liqo offloads, counts the pods that do not run, and deletes ended pods of Jobs if
// another pod needs their quota. If the list fails, watchPods logs the error and changes nothing.
func (o *Observer) watchPods(ctx context.Context, groups []fleet.Snapshot, now time.Time) {
	lister, ok := o.Backend.(backend.OffloadedPods)
	if !ok {
		return
	}
	nodes := virtualNodes(groups)
	bounded, cancel := context.WithTimeout(ctx, podsBound)
	defer cancel()
	c := podCount{before: o.seen.since, now: now, since: map[types.UID]time.Time{}, nodes: nodes,
		rows: map[podRow]*PodsWaiting{}}
	var err error
	if len(nodes) > 0 {
		err = lister.OffloadedPods(bounded, c.visit)
	}
	if o.seen.fails.IsNew(err) {
		o.Logger.Warn("cannot list the pods on virtual nodes; the next round tries again", "error", err)
	}
	if err != nil {
		return
	}
	for _, node := range nodes {
		for _, pod := range node.unaccepted {
			verdict, why := node.refusal(pod)
			c.count(node, pod.pod, verdict, why)
		}
		o.freeQuota(bounded, lister, node, c.since)
	}
	o.seen.since = c.since
	o.Pods.Set(c.sorted(), now)
}

// virtualNodes returns the nodes of the groups' instances by name.
func virtualNodes(groups []fleet.Snapshot) map[string]*virtualNode {
	nodes := map[string]*virtualNode{}
	for _, g := range groups {
		if g.Spec == nil {
			continue
		}
		for _, i := range g.Instances {
			if i.Attempt > 0 {
				nodes[fleet.ObjectName(i.Name, i.Attempt)] = &virtualNode{provider: i.Provider, group: g.Group,
					podStart: g.Spec.Budgets.WithDefaults().PodStart.Duration, room: g.Spec.Shape,
					live: corev1.ResourceList{}, held: corev1.ResourceList{}}
			}
		}
	}
	return nodes
}

type podRow struct {
	provider, group string
	verdict         boundpod.Verdict
}

// podCount counts the pods of one list.
type podCount struct {
	before, since map[types.UID]time.Time
	now           time.Time
	nodes         map[string]*virtualNode
	rows          map[podRow]*PodsWaiting
}

func (c *podCount) visit(pod *corev1.Pod) {
	node := c.nodes[pod.Spec.NodeName]
	if node == nil {
		return
	}
	verdict, why := boundpod.Of(pod, nil)
	if verdict == boundpod.RefusedByProvider {
		node.unaccepted = append(node.unaccepted, shareOf(pod))
		return
	}
	node.hold(pod)
	if verdict != "" {
		c.count(node, pod, verdict, why)
	}
}

// count adds a pod that does not run to its row, if the pod has not run for podSettles.
func (c *podCount) count(node *virtualNode, pod *corev1.Pod, verdict boundpod.Verdict, why string) {
	since, known := c.before[pod.UID]
	if !known {
		since = c.now
	}
	if len(c.since) < podsKept {
		c.since[pod.UID] = since
	}
	age := c.now.Sub(since)
	if age < podSettles {
		return
	}
	key := podRow{node.provider, node.group, verdict}
	row := c.rows[key]
	if row == nil {
		row = &PodsWaiting{Provider: node.provider, Group: node.group, Verdict: verdict, Since: c.now}
		c.rows[key] = row
	}
	row.Count++
	if age >= node.podStart {
		row.Overdue++
	}
	name := pod.Namespace + "/" + pod.Name
	if row.Pod == "" || since.Before(row.Since) || since.Equal(row.Since) && name < row.Pod {
		row.Pod, row.Since, row.Why = name, since, shorten.Words(why, podWords)
	}
}

func (c *podCount) sorted() []PodsWaiting {
	rows := make([]PodsWaiting, 0, len(c.rows))
	for _, row := range c.rows {
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, func(a, b PodsWaiting) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Group, b.Group),
			cmp.Compare(a.Verdict, b.Verdict))
	})
	return rows
}
