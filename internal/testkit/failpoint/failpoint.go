// Package failpoint chooses the points at which a test kills a process. A life is one run of the tested scenario, such
// as the creation and removal of an instance. The package derives the points from lives without kills: each side effect
// in such a life, such as a write to an API server or a call to Temporal, gives two points, one before the effect and
// one after it. The tests observe the effects and kill the process.
package failpoint

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
)

// Point is a point before or after one side effect in a kind of life.
type Point struct {
	Kind   string // the kind of life
	Effect string // name and number, because a life may have several effects with a name: "create nodes #1"
	After  bool   // the effect is done, and its process has not received the result yet
}

// String returns a text such as "plain: create nodes #1, after".
func (p Point) String() string {
	side := "before"
	if p.After {
		side = "after"
	}
	return fmt.Sprintf("%s: %s, %s", p.Kind, p.Effect, side)
}

// tries is the number of lives to which a point is assigned before Matrix gives it up. A life may not reach a point,
// because the numbers of effects depend on timing.
const tries = 3

// Matrix holds all points of some kinds of lives, and assigns them to lives. Its methods, and the methods of its lives,
// are safe for concurrent use.
type Matrix struct {
	mu     sync.Mutex
	rng    *rand.Rand
	wanted int             // the minimum number of kills
	state  map[Point]*fate // the kills and tries of each point
	kills  int
}

type fate struct{ kills, tries int }

// New returns a Matrix that assigns points to lives until it has counted at least wanted kills. The seed determines
// which points are assigned to the same life.
func New(seed uint64, wanted int) *Matrix {
	return &Matrix{rng: rand.New(rand.NewPCG(seed, 3)), wanted: wanted, state: map[Point]*fate{}}
}

// Derive creates the points of a kind of life: two for each effect that occurred in all the given lives.
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

// Undisturbed returns a life to which no points are assigned.
func Undisturbed() *Life { return &Life{seen: map[string]int{}} }

// Deal returns a new life of the kind, to which it assigns at most n points. It prefers the points with the fewest
// kills. It returns nil if the kind has no reachable point. It also returns nil if the wanted number of kills is
// reached and each point either had a kill or was assigned to its maximum of lives.
func (m *Matrix) Deal(kind string, n int) *Life {
	m.mu.Lock()
	defer m.mu.Unlock()
	var open []Point
	done := true
	for p, f := range m.state {
		if p.Kind == kind && (!f.finished() || f.kills > 0) {
			open = append(open, p)
		}
		done = done && f.finished()
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

func (f *fate) finished() bool { return f.kills > 0 || f.tries >= tries }

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

// Unreached returns the points without a kill, sorted.
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

// Life is one run of the tested scenario. It counts the effects of all processes in the run, and holds the points at
// which a process must be killed.
type Life struct {
	kind   string
	matrix *Matrix

	mu      sync.Mutex
	seen    map[string]int
	effects []string
	armed   []Point
}

// Before must be called before an effect with that name. It returns the effect: the name with its number in the life.
// If die is true, the caller must kill the process before the effect; Before has already counted the kill.
func (l *Life) Before(name string) (effect string, die bool) {
	l.mu.Lock()
	l.seen[name]++
	effect = fmt.Sprintf("%s #%d", name, l.seen[name])
	l.effects = append(l.effects, effect)
	l.mu.Unlock()
	return effect, l.reach(effect, false)
}

// After must be called when the effect is done and its process has not received the result yet. If it returns true, the
// caller must kill the process; After has already counted the kill.
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

// Effects returns the effects of the life that have begun, in order.
func (l *Life) Effects() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.effects)
}
