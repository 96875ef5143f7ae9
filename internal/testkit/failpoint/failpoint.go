// Package failpoint chooses the points in a life at which a process is killed. The points are derived: each observed
// side effect of an undisturbed life, such as a write to an API server or a call to Temporal, gives two points, one
// before the effect and one after it. Only tests import it; the tests observe the effects and kill the process.
package failpoint

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
)

// Point is a side effect of a kind of life, and whether the process dies before or after it.
type Point struct {
	Kind   string // the kind of life
	Effect string // with its number among effects of this name in its life: "create nodes #1"
	After  bool   // it is done, and its process has not received the result
}

// String returns a text such as "plain: create nodes #1, after".
func (p Point) String() string {
	side := "before"
	if p.After {
		side = "after"
	}
	return fmt.Sprintf("%s: %s, %s", p.Kind, p.Effect, side)
}

// tries is the number of lives in which a point is expected: with timing the numbers of effects differ.
const tries = 3

// Matrix holds all points of some kinds of lives. Its methods, and the methods of its lives, are safe for concurrent
// use.
type Matrix struct {
	mu     sync.Mutex
	rng    *rand.Rand
	wanted int             // the minimum number of kills
	state  map[Point]*fate // of each point
	kills  int
}

type fate struct{ kills, tries int }

// New returns a Matrix that deals points until the number of kills is at least wanted. The seed decides which points
// meet in a life.
func New(seed uint64, wanted int) *Matrix {
	return &Matrix{rng: rand.New(rand.NewPCG(seed, 3)), wanted: wanted, state: map[Point]*fate{}}
}

// Derive creates the points of a kind of life, for each effect that all these lives have had.
func (m *Matrix) Derive(kind string, lives ...*Life) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, effect := range lives[0].Effects() {
		if slices.ContainsFunc(lives, func(l *Life) bool { return !slices.Contains(l.Effects(), effect) }) {
			continue
		}
		for _, after := range []bool{false, true} {
			m.state[Point{kind, effect, after}] = &fate{}
		}
	}
}

// Undisturbed returns a life without kills.
func Undisturbed() *Life { return &Life{seen: map[string]int{}} }

// Deal returns a life of the kind with at most n of its points, the points with the fewest kills first. It returns nil
// when all points have had a kill or their tries and the wanted number of kills is reached, or when the kind has no
// reachable point.
func (m *Matrix) Deal(kind string, n int) *Life {
	m.mu.Lock()
	defer m.mu.Unlock()
	var open []Point
	done := true
	for p, f := range m.state {
		if p.Kind == kind && (!f.over() || f.kills > 0) {
			open = append(open, p)
		}
		done = done && f.over()
	}
	if done && m.kills >= m.wanted || len(open) == 0 {
		return nil
	}
	slices.SortFunc(open, func(a, b Point) int { return cmp.Compare(a.String(), b.String()) })
	m.rng.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
	slices.SortStableFunc(open, func(a, b Point) int { return cmp.Compare(m.state[a].kills, m.state[b].kills) })
	l := &Life{kind: kind, matrix: m, seen: map[string]int{}}
	for _, p := range open[:min(n, len(open))] {
		m.state[p].tries++
		l.armed = append(l.armed, p)
	}
	return l
}

func (f *fate) over() bool { return f.kills > 0 || f.tries >= tries }

func (m *Matrix) killed(p Point) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kills++
	m.state[p].kills++
}

// Count returns the number of points with a kill, and the number of all kills.
func (m *Matrix) Count() (points, kills int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.state {
		if f.kills > 0 {
			points++
		}
	}
	return points, m.kills
}

// Unreached returns the points without a kill, in order.
func (m *Matrix) Unreached() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []string
	for p, f := range m.state {
		if f.kills == 0 {
			all = append(all, p.String())
		}
	}
	slices.Sort(all)
	return all
}

// Life is one life: its effects over all its processes, and the points at which one of these must be killed.
type Life struct {
	kind   string
	matrix *Matrix

	mu      sync.Mutex
	seen    map[string]int
	effects []string
	armed   []Point
}

// Before must be called before an effect of that name, and returns the effect with its number in the life. With die the
// process must be killed now: the kill is counted.
func (l *Life) Before(name string) (effect string, die bool) {
	l.mu.Lock()
	l.seen[name]++
	effect = fmt.Sprintf("%s #%d", name, l.seen[name])
	l.effects = append(l.effects, effect)
	l.mu.Unlock()
	return effect, l.reach(effect, false)
}

// After must be called when the effect is done and its process has not received the result yet.
func (l *Life) After(effect string) (die bool) { return l.reach(effect, true) }

func (l *Life) reach(effect string, after bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := Point{l.kind, effect, after}
	at := slices.Index(l.armed, p)
	if at < 0 {
		return false
	}
	l.armed = slices.Delete(l.armed, at, at+1)
	l.matrix.killed(p)
	return true
}

// Effects returns the effects of the life up to now, in order.
func (l *Life) Effects() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.effects)
}
