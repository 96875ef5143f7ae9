package fleet

import (
	"slices"
	"time"
)

// Patience of the comparison between what is booked and what exists.
const (
	// missingTwice is how many comparisons in a row must miss the slice or the virtual node before it is lost.
	missingTwice = 2
	// nodeGrace is how long a Node may be missing alone: its virtual kubelet registers it again when somebody deleted it
	// (Liqo cmd/virtual-kubelet/root/root.go), and notices within 60 s, when it next writes the Node's status.
	nodeGrace = 3 * time.Minute
	// emptyGrace is how long a look may show nothing at all of several Ready instances before it is believed: that is
	// rather an answer from the wrong cluster, or one whose data is being restored, than all of them gone at once.
	emptyGrace = 5 * time.Minute
)

// Seen is what exists of one attempt.
type Seen struct {
	Instance string
	Attempt  int
	// Slice, Virtual and Node say which objects exist and are not terminating.
	Slice, Virtual, Node bool
	// Stamped and Ready are the Node's.
	Stamped, Ready bool
	// Held says that there is nothing but a hold on a provider.
	Held bool
	// Unreadable says that its slice has no booking that can be read.
	Unreadable bool
}

// Compare holds what exists against what is booked, as of the time the look began. It applies registered, notReady and
// lost to Ready instances, and returns the attempts that nobody has booked any longer and that were so in the comparison
// before, too. Instances that changed phase since the look are left for the next one.
func (l *Ledger) Compare(seen []Seen, looked, now time.Time) (orphans []Seen, changed bool) {
	byName := make(map[string]Seen, len(seen))
	unbooked := map[string]bool{}
	for _, s := range seen {
		name := ObjectName(s.Instance, s.Attempt)
		if !s.Held {
			byName[name] = s
		}
		if !l.books(s) {
			if l.Unbooked[name] {
				orphans = append(orphans, s)
			}
			unbooked[name] = true
		}
	}
	l.Unbooked = unbooked
	ready := l.readyAt(looked)
	if !l.believes(ready, byName, now) {
		return orphans, false
	}
	for _, i := range ready {
		changed = i.compare(byName[ObjectName(i.Name, i.Attempt)], now) || changed
	}
	return orphans, changed
}

// readyAt are the instances that were Ready when the look began.
func (l *Ledger) readyAt(looked time.Time) (ready []*Instance) {
	for n := range l.Instances {
		if i := &l.Instances[n]; i.Phase == Ready && !i.Since.After(looked) {
			ready = append(ready, i)
		}
	}
	return ready
}

// believes tells whether a look may be judged by: not while one shows nothing at all of several Ready instances, see
// emptyGrace.
func (l *Ledger) believes(ready []*Instance, seen map[string]Seen, now time.Time) bool {
	found := slices.ContainsFunc(ready, func(i *Instance) bool {
		_, ok := seen[ObjectName(i.Name, i.Attempt)]
		return ok
	})
	switch {
	case found || len(ready) < 2:
		l.EmptySince = nil
	case l.EmptySince == nil:
		l.EmptySince = &now
	}
	return l.EmptySince == nil || now.Sub(*l.EmptySince) >= emptyGrace
}

// books tells whether the attempt is an instance's own. An attempt above a growing instance's is one of a scale-out whose
// report is still on its way; above any other's it is of a scale-out that the group has forgotten.
func (l *Ledger) books(s Seen) bool {
	i := l.Find(s.Instance)
	switch {
	case i == nil && s.Unreadable:
		return true // of a group whose history is lost: nobody knows what it is, and it may carry pods; it is left to people
	case i == nil || i.Phase == Released || i.Phase == Failed:
		return false
	case i.Phase.Growing():
		return s.Attempt >= i.Attempt
	default:
		return s.Attempt == i.Attempt
	}
}

func (i *Instance) compare(s Seen, now time.Time) (changed bool) {
	was := *i
	if s.Slice && s.Virtual {
		i.Missing = 0
	} else {
		i.Missing++
	}
	switch {
	case s.Node:
		i.NodeMissing = nil
	case i.NodeMissing == nil:
		i.NodeMissing = &now
	}
	switch {
	case i.Missing >= missingTwice:
		i.lose("its ResourceSlice or VirtualNode is gone", now)
	case i.NodeMissing != nil && now.Sub(*i.NodeMissing) >= nodeGrace:
		i.lose("its Node is gone and did not come back", now)
	case s.Node && s.Stamped && s.Ready && i.NotReady:
		_, _ = i.Apply(Event{Kind: Registered}, now) // defined in every phase
	case s.Node && !s.Ready && !i.NotReady:
		_, _ = i.Apply(Event{Kind: NotReady}, now)
	}
	return i.Phase != was.Phase || i.NotReady != was.NotReady
}

func (i *Instance) lose(why string, now time.Time) {
	provider := ""
	if i.Offer != nil {
		provider = i.Offer.Provider
	}
	_, _ = i.Apply(Event{Kind: Lost, Failure: NewFailure(CodeLost, provider, "", why)}, now)
}
