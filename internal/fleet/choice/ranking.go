package choice

import (
	"cmp"
	"container/heap"
	"hash/fnv"
	"iter"
	"slices"
)

// best yields the judgement with the index chosen, unless chosen is negative, and then the other judgements from best
// to worst. It reorders the judgements.
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

// equals yields the indexes of fitting judgements in groups of equal judgements, the best group first. Judgements in
// one group differ only in names. It reorders the judgements.
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

// next moves the first item to the end and removes it from the heap. It returns the item's index, or -1 for an empty
// heap.
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

// favours orders judgements: fitting ones first, then those without a hanging removal, then by score and price. It
// returns 0 when both are equal.
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

// better orders judgements as favours does, and equal judgements by their names, so that equal input gives equal
// choices.
func better(a, b *evaluation) int {
	if c := favours(a, b); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.candidate.Offer.Provider, b.candidate.Offer.Provider),
		cmp.Compare(a.candidate.Offer.Name, b.candidate.Offer.Name))
}

// place is the position of a candidate in the order in which the instances of a group choose.
type place struct {
	n     int    // the index of its judgement
	level int    // the number of the group's nodes there, including capacity assigned before
	turn  uint32 // orders equal providers differently for different groups
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

// choice returns the index of the candidate for the instance. It returns -1 for the best candidate.
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

// order yields the indexes of the candidates that count instances of a group choose, one after the other, based on the
// capacity before the first choice. The best candidates come first. Among equal candidates, it next yields the
// candidate with the fewest nodes of the group. Thus an instance that has already chosen does not change the order for
// the other instances.
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

// deal yields the equal candidates in rotation until no candidate has room or yield returns false.
func (q *question) deal(places []place, yield func(int) bool) (more bool) {
	turns := lazyHeap[place]{places, q.inTurn}
	heap.Init(&turns)
	rooms := map[int]int{} // by index; computed only for candidates that are taken, because it is expensive
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

// oneByOne yields the best candidate after each earlier choice, because each choice changes the scores.
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
		var tried []*trial // each choice adds at most one more candidate
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
