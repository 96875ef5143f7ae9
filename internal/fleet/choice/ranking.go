package choice

import (
	"cmp"
	"container/heap"
	"hash/fnv"
	"iter"
	"slices"
)

// best yields all evaluations. If the parameter chosen is not negative, the evaluation q.evaluations[chosen] comes
// first. The other evaluations follow from best to worst. best reorders q.evaluations.
func (q *question) best(chosen int) iter.Seq[evaluation] {
	return func(yield func(evaluation) bool) {
		rest := lazyHeap[evaluation]{q.evaluations, better}
		if chosen >= 0 {
			rest.Swap(0, chosen)
			if !yield(q.evaluations[0]) {
				return
			}
			rest.items = q.evaluations[1:]
		}
		all := rest.items
		heap.Init(&rest)
		n := rest.next()
		for n >= 0 && yield(all[n]) {
			n = rest.next()
		}
	}
}

// equals yields slices with the indexes of fitting evaluations, the best slice first. The evaluations in one slice
// are equal for favours. equals reorders q.evaluations.
func (q *question) equals() iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		var equal []int
		rest := lazyHeap[evaluation]{q.evaluations, favours}
		heap.Init(&rest)
		for n := rest.next(); n >= 0 && q.evaluations[n].filter == ""; n = rest.next() {
			if len(equal) > 0 && favours(&q.evaluations[equal[0]], &q.evaluations[n]) != 0 {
				if !yield(equal) {
					return
				}
				equal = equal[:0]
			}
			equal = append(equal, n)
		}
		yield(equal)
	}
}

// lazyHeap is a heap.Interface that sorts lazily: it orders only the items that the caller takes.
type lazyHeap[T any] struct {
	items []T
	order func(a, b *T) int
}

// next removes the first item from the heap, and moves it behind the items that remain in the heap. It returns the
// new index of the item, or -1 if the heap was empty.
func (u *lazyHeap[T]) next() int {
	if len(u.items) > 0 {
		heap.Pop(u)
		return len(u.items)
	}
	return -1
}

func (u *lazyHeap[T]) Len() int           { return len(u.items) }
func (u *lazyHeap[T]) Less(a, b int) bool { return u.order(&u.items[a], &u.items[b]) < 0 }
func (u *lazyHeap[T]) Swap(a, b int)      { u.items[a], u.items[b] = u.items[b], u.items[a] }
func (u *lazyHeap[T]) Push(any)           { panic("nothing is added") }
func (u *lazyHeap[T]) Pop() any           { u.items = u.items[:len(u.items)-1]; return nil }

// favours compares two evaluations and returns a negative number if a is better. A candidate that fits is better than
// a candidate that does not fit. If this is equal, a provider without a hanging removal is better, then a higher
// score, and then a lower price. favours returns 0 when all of these are equal.
func favours(a, b *evaluation) int {
	if (a.filter == "") != (b.filter == "") {
		if a.filter == "" {
			return -1
		}
		return 1
	}
	if a.hangs != b.hangs {
		if b.hangs {
			return -1
		}
		return 1
	}
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	return cmp.Compare(a.price, b.price)
}

// better compares as favours does. It compares equal evaluations by provider and offer name, so that the order of the
// input does not matter.
func better(a, b *evaluation) int {
	if c := favours(a, b); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.candidate.Offer.Provider, b.candidate.Offer.Provider),
		cmp.Compare(a.candidate.Offer.Name, b.candidate.Offer.Name))
}

// place contains the values that determine which of several equal candidates the next instance of a group uses.
type place struct {
	n     int    // the index of its evaluation
	level int    // the number of the group's nodes on the provider, including the nodes that order has assigned
	turn  uint32 // a hash that orders equal providers differently for different groups
}

func (q *question) place(n int, name string) place {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name + "/" + q.evaluations[n].candidate.Offer.Provider))
	return place{n, q.evaluations[n].candidate.Own, h.Sum32()}
}

func (q *question) inTurn(a, b *place) int {
	if c := cmp.Or(cmp.Compare(a.level, b.level), cmp.Compare(a.turn, b.turn)); c != 0 {
		return c
	}
	return better(&q.evaluations[a.n], &q.evaluations[b.n])
}

// choice returns the index of the candidate for the instance. It returns -1 when the instances that choose earlier
// use up all candidates. best then starts with the best candidate.
func (q *question) choice(rank Rank) int {
	ahead := rank.Ahead
	for n := range q.order(rank.Name, rank.Ahead+1) {
		if ahead == 0 {
			return n
		}
		ahead--
	}
	return -1
}

// order yields an index for each instance of a group: the index of the candidate that the instance chooses. It yields
// at least count indexes if enough nodes fit. The best candidates come first. Among equal candidates it yields the
// one with the fewest nodes of the group. The nodes that order has assigned to earlier instances count too. Therefore
// the candidate of an instance does not depend on whether an earlier instance has already received its node.
func (q *question) order(name string, count int) iter.Seq[int] {
	if scoresDependOnNodes(q.spec.Selection) {
		return q.oneByOne(name, count)
	}
	return func(yield func(int) bool) {
		for equal := range q.equals() {
			places := make([]place, len(equal))
			for i, n := range equal {
				places[i] = q.place(n, name)
			}
			if !q.deal(places, yield) {
				return
			}
		}
	}
}

// deal yields the index of each of the equal candidates in rotation. It ends when no candidate can take another node,
// or when yield returns false.
func (q *question) deal(places []place, yield func(int) bool) (more bool) {
	turns := lazyHeap[place]{places, q.inTurn}
	heap.Init(&turns)
	rooms := map[int]int{} // nodes that still fit, by index; computed only when needed, because this is expensive
	for len(turns.items) > 0 {
		n := turns.items[0].n
		if !yield(n) {
			return false
		}
		if _, known := rooms[n]; !known {
			rooms[n] = q.evaluations[n].candidate.room(q.shape)
		}
		if rooms[n]--; rooms[n] == 0 {
			heap.Pop(&turns)
			continue
		}
		turns.items[0].level++
		heap.Fix(&turns, 0)
	}
	return true
}

// oneByOne yields the index of the best candidate for one instance after the other. After each choice it computes the
// score of the chosen candidate again, because the additional node changes the score.
func (q *question) oneByOne(name string, count int) iter.Seq[int] {
	type trial struct {
		evaluation
		place
		room int
	}
	prefer := func(a, b *trial) int {
		if c := favours(&a.evaluation, &b.evaluation); c != 0 {
			return c
		}
		return q.inTurn(&a.place, &b.place)
	}
	return func(yield func(int) bool) {
		var tried []*trial // at least the best count candidates, because each choice needs at most one more candidate
		for equal := range q.equals() {
			for _, n := range equal {
				tried = append(tried, &trial{q.evaluations[n], q.place(n, name), q.evaluations[n].candidate.room(q.shape)})
			}
			if len(tried) >= count {
				break
			}
		}
		for len(tried) > 0 {
			t := slices.MinFunc(tried, prefer)
			if !yield(t.n) {
				return
			}
			t.room, t.level = t.room-1, t.level+1
			q.weigh(&t.evaluation, t.level)
			if t.room == 0 {
				tried = slices.DeleteFunc(tried, func(other *trial) bool { return other == t })
			}
		}
	}
}
