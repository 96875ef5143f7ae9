package fleet

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
		rest := unordered{q.judged, better}
		if chosen >= 0 {
			rest.Swap(0, chosen)
			if !yield(q.judged[0]) {
				return
			}
			rest.judged = q.judged[1:]
		}
		all := rest.judged
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
		rest := unordered{q.judged, favours}
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
		if len(equal) > 0 {
			yield(equal)
		}
	}
}

// unordered is a heap.Interface: only as many judgements are put in order as are asked for.
type unordered struct {
	judged []judgement
	order  func(a, b *judgement) int
}

// next moves the best to the end and takes it out; it returns its index, -1 when there is none.
func (u *unordered) next() int {
	if len(u.judged) > 0 {
		heap.Pop(u)
		return len(u.judged)
	}
	return -1
}

func (u *unordered) Len() int           { return len(u.judged) }
func (u *unordered) Less(a, b int) bool { return u.order(&u.judged[a], &u.judged[b]) < 0 }
func (u *unordered) Swap(a, b int)      { u.judged[a], u.judged[b] = u.judged[b], u.judged[a] }
func (u *unordered) Push(any)           { panic("nothing is added") }
func (u *unordered) Pop() any           { u.judged = u.judged[:len(u.judged)-1]; return nil }

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

func (q *question) place(n int, name string) place {
	c, h := q.judged[n].candidate, fnv.New32a()
	_, _ = h.Write([]byte(name + "/" + c.Offer.Provider))
	return place{n, c.room(q.shape), h.Sum32()}
}

func (q *question) inTurn(a, b place) int {
	if a.turn != b.turn {
		return cmp.Compare(a.turn, b.turn)
	}
	return better(&q.judged[a.n], &q.judged[b.n])
}

// choice returns the index of the candidate that the instance takes; -1 for the best one. It leaves those ahead the
// best places, and of the equal offers that have places left it deals them out in turn: instances of one group that
// choose at the same time, of a world that none of them has changed yet, choose differently.
func (q *question) choice(rank Rank) int {
	if q.spec.Selection.counts() {
		return q.oneByOne(rank)
	}
	ahead := rank.Ahead
	for equal := range q.equals() {
		sum, places := 0, make([]place, len(equal))
		for i, n := range equal {
			places[i] = q.place(n, rank.Name)
			sum += places[i].room
		}
		if ahead < sum {
			slices.SortFunc(places, q.inTurn)
			return deal(places, rank.Number%sum)
		}
		ahead -= sum
	}
	return -1
}

// deal returns the index of the given number: places are dealt out one from each at a time.
func deal(places []place, number int) int {
	for round := 1; ; round++ {
		for _, p := range places {
			if p.room < round {
				continue
			}
			if number == 0 {
				return p.n
			}
			number--
		}
	}
}

// oneByOne returns the index of what is left when those ahead have chosen, one after the other; -1 for the best one.
func (q *question) oneByOne(rank Rank) int {
	type trial struct {
		judgement
		place
		own int
	}
	prefer := func(a, b trial) int {
		if c := favours(&a.judgement, &b.judgement); c != 0 {
			return c
		}
		return q.inTurn(a.place, b.place)
	}
	var tried []trial // each choice brings one more candidate into play
	for equal := range q.equals() {
		for _, n := range equal {
			if p := q.place(n, rank.Name); p.room > 0 {
				tried = append(tried, trial{q.judged[n], p, q.judged[n].candidate.Own})
			}
		}
		if len(tried) > rank.Ahead {
			break
		}
	}
	slices.SortFunc(tried, prefer)
	tried = tried[:min(len(tried), rank.Ahead+1)]
	for ahead := rank.Ahead; len(tried) > 0; ahead-- {
		next := 0
		for n := range tried {
			if prefer(tried[n], tried[next]) < 0 {
				next = n
			}
		}
		t := &tried[next]
		if ahead == 0 {
			return t.n
		}
		t.room, t.own = t.room-1, t.own+1
		q.weigh(&t.judgement, t.own)
		if t.room == 0 {
			tried = slices.Delete(tried, next, next+1)
		}
	}
	return -1
}
