package choice

import (
	"cmp"
	"container/heap"
	"hash/fnv"
	"iter"
	"slices"
)

// best yields the judgement with the chosen index, unless that is negative, and then the others from best to worst. It
// reorders them.
func (q *question) best(chosen int) iter.Seq[judgement] {
	return func(yield func(judgement) bool) {
		rest := unordered[judgement]{q.judged, better}
		if chosen >= 0 {
			rest.Swap(0, chosen)
			if !yield(q.judged[0]) {
				return
			}
			rest.items = q.judged[1:]
		}
		all := rest.items
		heap.Init(&rest)
		n := rest.next()
		for n >= 0 && yield(all[n]) {
			n = rest.next()
		}
	}
}

// equals yields the indexes of judgements that fit and that nothing tells apart but names, the best ones first. It
// reorders them.
func (q *question) equals() iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		var equal []int
		rest := unordered[judgement]{q.judged, favours}
		heap.Init(&rest)
		for n := rest.next(); n >= 0 && q.judged[n].filter == ""; n = rest.next() {
			if len(equal) > 0 && favours(&q.judged[equal[0]], &q.judged[n]) != 0 {
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

// unordered is a heap.Interface: only as many items are put in order as are asked for.
type unordered[T any] struct {
	items []T
	order func(a, b *T) int
}

// next moves the first to the end and takes it out; it returns its index, -1 when there is none.
func (u *unordered[T]) next() int {
	if len(u.items) > 0 {
		heap.Pop(u)
		return len(u.items)
	}
	return -1
}

func (u *unordered[T]) Len() int           { return len(u.items) }
func (u *unordered[T]) Less(a, b int) bool { return u.order(&u.items[a], &u.items[b]) < 0 }
func (u *unordered[T]) Swap(a, b int)      { u.items[a], u.items[b] = u.items[b], u.items[a] }
func (u *unordered[T]) Push(any)           { panic("nothing is added") }
func (u *unordered[T]) Pop() any           { u.items = u.items[:len(u.items)-1]; return nil }

// favours orders judgements: fitting first, then by score and price; 0 where nothing speaks for the one.
func favours(a, b *judgement) int {
	if (a.filter == "") != (b.filter == "") {
		if a.filter == "" {
			return -1
		}
		return 1
	}
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	return cmp.Compare(a.price, b.price)
}

// better orders equals by their names, so that equal input gives equal choices.
func better(a, b *judgement) int {
	if c := favours(a, b); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.candidate.Offer.Provider, b.candidate.Offer.Provider),
		cmp.Compare(a.candidate.Offer.Name, b.candidate.Offer.Name))
}

// place is where nodes can go: by the index of a judgement, and how many.
type place struct {
	n, room int
	turn    uint32 // orders equal providers differently for different names
}

// place is the one place that each candidate that fits has.
func (q *question) place(n int, name string) place {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name + "/" + q.judged[n].candidate.Offer.Provider))
	return place{n, 1, h.Sum32()}
}

func (q *question) inTurn(a, b *place) int {
	if a.turn != b.turn {
		return cmp.Compare(a.turn, b.turn)
	}
	return better(&q.judged[a.n], &q.judged[b.n])
}

// choice returns the index of the candidate that the instance takes; -1 for the best one. It leaves those ahead the
// best places, and of the equal offers that have places left it deals them out in turn: instances of one group that
// choose at the same time, of a world that none of them has changed yet, choose differently.
func (q *question) choice(rank Rank) int {
	if counts(q.spec.Selection) {
		return q.oneByOne(rank)
	}
	ahead := rank.Ahead
	for equal := range q.equals() {
		sum, places := 0, make([]place, len(equal))
		scarce := max(ahead, rank.Number) >= len(equal) // else one place of each is enough: to ask for more costs the most
		for i, n := range equal {
			if places[i] = q.place(n, rank.Name); scarce {
				places[i].room = q.judged[n].candidate.room(q.shape)
			}
			sum += places[i].room
		}
		if ahead < sum {
			return q.deal(places, rank.Number%sum)
		}
		ahead -= sum
	}
	return -1
}

// deal returns the index of the given number: places are dealt out in turn, one from each at a time.
func (q *question) deal(places []place, number int) int {
	for round := 1; ; round++ {
		places = slices.DeleteFunc(places, func(p place) bool { return p.room < round })
		if number < len(places) {
			break
		}
		number -= len(places)
	}
	turns := unordered[place]{places, q.inTurn}
	heap.Init(&turns)
	for range number {
		turns.next()
	}
	return places[turns.next()].n
}

// oneByOne returns the index of what is left when those ahead have chosen, one after the other; -1 for the best one.
func (q *question) oneByOne(rank Rank) int {
	type trial struct {
		judgement
		place
		own int
	}
	prefer := func(a, b *trial) int {
		if c := favours(&a.judgement, &b.judgement); c != 0 {
			return c
		}
		return q.inTurn(&a.place, &b.place)
	}
	var tried []*trial // each choice brings one more candidate into play
	for equal := range q.equals() {
		for _, n := range equal {
			p, c := q.place(n, rank.Name), q.judged[n].candidate
			p.room = c.room(q.shape)
			tried = append(tried, &trial{q.judged[n], p, c.Own})
		}
		if len(tried) > rank.Ahead {
			break
		}
	}
	for ahead := rank.Ahead; len(tried) > 0; ahead-- {
		t := slices.MinFunc(tried, prefer)
		if ahead == 0 {
			return t.n
		}
		t.room, t.own = t.room-1, t.own+1
		q.weigh(&t.judgement, t.own)
		if t.room == 0 {
			tried = slices.DeleteFunc(tried, func(other *trial) bool { return other == t })
		}
	}
	return -1
}
