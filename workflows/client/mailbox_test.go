package client

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

const (
	waitLimit = time.Minute
	waitTick  = time.Millisecond
)

// post is a send function that waits for the test's permission and records the sent letters. A letter holds the rows of
// one message.
type post struct {
	let  chan error
	mu   sync.Mutex
	sent map[string][][]int
}

func newPost() *post { return &post{let: make(chan error), sent: map[string][][]int{}} }

func (p *post) send(ctx context.Context, target string, rows []int) error {
	p.mu.Lock()
	p.sent[target] = append(p.sent[target], slices.Clone(rows))
	p.mu.Unlock()
	select {
	case err := <-p.let:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *post) to(target string) [][]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent[target]
}

// letters puts the letters into the mailbox in this order, without waiting in between, and returns their results.
func letters(t *testing.T, m *mailbox[int], target string, all ...[]int) <-chan error {
	t.Helper()
	ends := make(chan error, len(all))
	for _, rows := range all {
		before := m.count(target)
		go func() { ends <- m.put(t.Context(), target, rows...) }()
		require.Eventually(t, func() bool { return m.count(target) != before }, waitLimit, waitTick)
	}
	return ends
}

// count returns the number of letters that wait for the target, or -1 when the mailbox sends nothing to the target.
// The number changes with each letter that is put while another letter is being sent.
func (m *mailbox[T]) count(target string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	queue, open := m.waiting[target]
	if !open {
		return -1
	}
	return len(queue)
}

// The function `first` puts one row and waits until the mailbox sends it.
func first(t *testing.T, m *mailbox[int], p *post, target string) <-chan error {
	t.Helper()
	ends := make(chan error, 1)
	go func() { ends <- m.put(t.Context(), target, 0) }()
	require.Eventually(t, func() bool { return len(p.to(target)) == 1 && m.count(target) == 0 }, waitLimit, waitTick)
	return ends
}

func TestMailSharesSignalsInOrder(t *testing.T) {
	p := newPost()
	m := newMailbox(0, p.send)
	one := first(t, m, p, "a")
	many := letters(t, m, "a", []int{1}, []int{2, 3}, []int{4})
	other := first(t, m, p, "b") // another target does not wait
	for range 3 {
		p.let <- nil
	}
	require.NoError(t, <-one)
	require.NoError(t, <-other)
	for range 3 {
		require.NoError(t, <-many)
	}
	require.Equal(t, [][]int{{0}, {1, 2, 3, 4}}, p.to("a"))
	require.Equal(t, [][]int{{0}}, p.to("b"))
	require.Eventually(t, func() bool { return m.count("a") == -1 }, waitLimit, waitTick,
		"nothing is kept for a target at rest")
}

func TestMailIsBoundedByRows(t *testing.T) {
	p := newPost()
	m := newMailbox(0, p.send)
	first(t, m, p, "a")
	ends := letters(t, m, "a", make([]int, mailRows-1), make([]int, 2), make([]int, mailRows-2))
	for range 3 {
		p.let <- nil
	}
	for range 3 {
		require.NoError(t, <-ends)
	}
	var sizes []int
	for _, rows := range p.to("a") {
		sizes = append(sizes, len(rows))
	}
	require.Equal(t, []int{1, mailRows - 1, mailRows}, sizes, "a letter's rows travel together")
}

// The size of a signal is bounded, too. An offer may have 64 KiB, so many offers in one signal would exceed 2 MiB.
// Temporal refuses such a signal at every attempt.
func TestMailIsBoundedBySize(t *testing.T) {
	let, done := make(chan struct{}), make(chan error, 6)
	var sent []int
	m := newMailbox(0, func(_ context.Context, _ string, rows []string) error {
		<-let
		sent = append(sent, len(rows))
		return nil
	})
	large := strings.Repeat("x", mailBytes*2/5)
	for n, row := range []string{"", large, large, large, strings.Repeat("x", 2*mailBytes), ""} {
		go func() { done <- m.put(t.Context(), "a", row) }()
		require.Eventually(t, func() bool { return m.count("a") == n }, waitLimit, waitTick)
	}
	close(let)
	for range 6 {
		require.NoError(t, <-done)
	}
	require.Equal(t, []int{1, 2, 1, 1, 1}, sent, "a row that is too large travels alone")
}

func TestMailErrorsReachEveryCaller(t *testing.T) {
	p := newPost()
	m := newMailbox(0, p.send)
	one := first(t, m, p, "a")
	many := letters(t, m, "a", []int{1}, []int{2})
	broken := errors.New("broken")
	p.let <- nil
	p.let <- broken
	require.NoError(t, <-one)
	require.ErrorIs(t, <-many, broken)
	require.ErrorIs(t, <-many, broken)
	again := letters(t, m, "a", []int{3})
	p.let <- nil
	require.NoError(t, <-again, "an error is not remembered")
}

func TestLetterIsDeliveredAfterItsCallerLeft(t *testing.T) {
	p := newPost()
	m := newMailbox(0, p.send)
	one := first(t, m, p, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, m.put(ctx, "a", 1), context.Canceled)
	p.let <- nil
	p.let <- nil
	require.NoError(t, <-one)
	require.Equal(t, [][]int{{0}, {1}}, p.to("a"), "it is delivered all the same")
}

// The mailbox pauses between two signals to a target. Letters that arrive during the pause share the next signal.
func TestMailPausesBetweenSignals(t *testing.T) {
	p := newPost()
	m := newMailbox(time.Hour, p.send)
	one := first(t, m, p, "a")
	p.let <- nil
	require.NoError(t, <-one, "its caller does not wait for the pause")
	letters(t, m, "a", []int{1}, []int{2})
	require.Equal(t, 2, m.count("a"))
	require.Equal(t, [][]int{{0}}, p.to("a"))
}

// signalled records the workflows to which the client sends a signal.
type signalled struct {
	Temporal
	ids []string
}

func (s *signalled) SignalWorkflow(_ context.Context, id, _, _ string, _ any) error {
	s.ids = append(s.ids, id)
	return nil
}

func TestConfirmingFactIsNotSent(t *testing.T) {
	s := &signalled{}
	m := NewMessages(s, "", "q")
	require.NoError(t, m.Fact(t.Context(), "edge", fleet.Fact{Kind: fleet.Registered, Confirms: true}))
	require.Empty(t, s.ids)
	require.NoError(t, m.Fact(t.Context(), "edge", fleet.Fact{Kind: fleet.Registered}))
	require.Equal(t, []string{"nodegroup/edge"}, s.ids)
}

// A signal has at most a hundred rows, and its letters have at most 256 KiB together.
func TestSignalIsBoundedByRowsAndSize(t *testing.T) {
	m := newMailbox(0, newPost().send)
	for name, c := range map[string]struct {
		letters []letter[int]
		want    int
	}{
		"just enough rows":  {[]letter[int]{{rows: make([]int, 60)}, {rows: make([]int, 40)}, {rows: make([]int, 1)}}, 2},
		"a row too many":    {[]letter[int]{{rows: make([]int, 60)}, {rows: make([]int, 41)}}, 1},
		"a letter too long": {[]letter[int]{{rows: make([]int, 101)}, {rows: make([]int, 1)}}, 1},
		"just small enough": {[]letter[int]{{size: 200 << 10}, {size: 56 << 10}, {size: 1}}, 2},
		"a byte too many":   {[]letter[int]{{size: 200 << 10}, {size: 56<<10 + 1}}, 1},
		"one too large":     {[]letter[int]{{size: 1 << 20}, {size: 1}}, 1},
		"nothing":           {nil, 0},
	} {
		m.waiting["a"] = c.letters
		got, rows := m.next("a")
		require.Len(t, got, c.want, name)
		n := 0
		for _, l := range c.letters[:c.want] {
			n += len(l.rows)
		}
		require.Len(t, rows, n, name)
		require.Len(t, m.waiting["a"], len(c.letters)-c.want, name)
		_, under := m.waiting["a"]
		require.Equal(t, c.letters != nil, under, name)
	}
}

// A group receives its views in at most twenty signals a second, and a provider receives holds immediately. Neither
// mailbox keeps a caller waiting for more than ten seconds.
func TestSignalRatesOfGroupsAndProviders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &namespace{}
		m := NewMessages(n, "", "")
		began := time.Now()
		for range 3 {
			require.NoError(t, m.View(t.Context(), "a", fleet.View{}))
			require.NoError(t, m.Fact(t.Context(), "a", fleet.Fact{}))
		}
		require.Equal(t, 100*time.Millisecond, time.Since(began))
		began = time.Now()
		for range 3 {
			require.NoError(t, m.Holds(t.Context(), "milan", fleet.HoldRequest{}))
		}
		require.Zero(t, time.Since(began))
		p := newPost()
		require.ErrorIs(t, newMailbox(0, p.send).put(t.Context(), "a", 1), context.DeadlineExceeded)
		require.Equal(t, 10*time.Second, time.Since(began))
		time.Sleep(time.Second) // for the last pauses to end
	})
}

// A letter that cannot be encoded is not sent.
func TestUnencodableLetterIsNotSent(t *testing.T) {
	m := newMailbox(0, func(context.Context, string, []chan int) error { return nil })
	require.Error(t, m.put(t.Context(), "a", make(chan int)))
	require.Empty(t, m.waiting)
}
