// Package failpoint chooses the points at which a test kills a process. A life is one run of the tested scenario,
// such as the creation and removal of an instance; a scenario can have several kinds of lives. The package derives
// the points from lives in which no process is killed. In such a life, each side effect, such as a write to an API
// server or a call to Temporal, gives two points: one before the effect and one after it. The tests observe the
// effects and kill the process.
package failpoint

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
)

// Point is a point before or after one side effect in lives of one kind.
type Point struct {
	Kind   string // the kind of life
	Effect string // name and number, because an effect may occur several times in a life: "create nodes #1"
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

// tries is the maximum number of lives to which a point is assigned while it has had no kill. A life may not reach
// each of its points, because the numbers of effects depend on timing.
const tries = 3

// Matrix holds the points of each kind of life for which Derive was called, and assigns them to new lives (Deal). Its
// methods, and the methods of its lives, are safe for concurrent use.
type Matrix struct {
	mu     sync.Mutex
	rng    *rand.Rand
	wanted int             // the minimum number of kills in all lives together
	state  map[Point]*fate // the kills and tries of each point
	kills  int
}

type fate struct{ kills, tries int }

// New returns a Matrix. It assigns points to lives until the number of kills is at least the parameter wanted. The
// seed determines which points are assigned to the same life.
func New(seed uint64, wanted int) *Matrix {
	return &Matrix{rng: rand.New(rand.NewPCG(seed, 3)), wanted: wanted, state: map[Point]*fate{}}
}

// Derive creates the points for one kind of life: two for each effect that occurred in all the given lives.
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

// Deal returns a new life of the kind, with at most n points at which a process must be killed. It prefers the points
// with the fewest kills so far. It returns nil if the kind has no reachable point. It also returns nil if the wanted
// number of kills is reached and no point needs another life: each point had a kill, or was assigned to the maximum
// number of lives.
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

// Count returns the number of points that had a kill, and the number of all kills.
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

// Unreached returns the points that had no kill, sorted.
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

// Before must be called before an effect with that name. It returns the effect: the name, and how often the effect
// has begun in this life. If die is true, the caller must kill the process before the effect. Before has then already
// counted the kill.
func (l *Life) Before(name string) (effect string, die bool) {
	l.mu.Lock()
	l.seen[name]++
	effect = fmt.Sprintf("%s #%d", name, l.seen[name])
	l.effects = append(l.effects, effect)
	l.mu.Unlock()
	return effect, l.reach(effect, false)
}

// After must be called when the effect is done and its process has not received the result yet. If it returns true,
// the caller must kill the process. After has then already counted the kill.
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

// Effects returns the effects that have begun in the life, in their order.
func (l *Life) Effects() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.effects)
}
