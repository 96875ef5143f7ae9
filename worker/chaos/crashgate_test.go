package chaos

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/failpoint"
)

// A child sends a request to the gate before and after each effect.
const (
	before = "before"
	after  = "after"
)

// gate answers the children of a fleet before and after each side effect. It may kill the child that sends the request,
// and start it again.
type gate struct {
	url       string
	processes map[string]*process // by role

	mu    sync.Mutex
	life  *failpoint.Life // nil between two lives
	count int             // number of lives
	m     *model
}

func newGate(t *testing.T) *gate {
	g := &gate{processes: map[string]*process{}}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	g.url = server.URL
	return g
}

// begin sets the current life.
func (g *gate) begin(life *failpoint.Life, m *model) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.life, g.m = life, m
	g.count++
}

// ServeHTTP answers a request before an effect with the name of the effect. The child sends this name again after the
// effect.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	role, when, what := r.FormValue("role"), r.FormValue("when"), r.FormValue("what")
	p := g.processes[role]
	if g.life == nil || strconv.Itoa(p.pid()) != r.FormValue("pid") {
		return // the child has been killed, or no life is set
	}
	of := strconv.Itoa(g.count) + " "
	die := false
	switch effect, ok := strings.CutPrefix(what, of); {
	case when == before:
		what, die = g.life.Before(role + " " + what)
		_, _ = fmt.Fprint(w, of+what)
	case ok:
		what, die = effect, g.life.After(effect)
	}
	if !die {
		return
	}
	g.m.note("test", "kills %s %s %s", p.name, when, what)
	p.kill()
	if err := p.start(); err != nil {
		g.m.violate("start %s again: %v", p.name, err)
	}
}
