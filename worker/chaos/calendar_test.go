package chaos

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// calendar makes days pass. The first part of each simulated hour, Awake, passes at the speed of a real clock. The
// rest of the hour passes within the real duration Asleep. Only workflows use this clock, because all long times of
// the product, for example the time for which values are stored, use the workflows' clock. Activities, calls and
// Temporal itself use the real time.
//
// The workflows' clock is a function of Temporal's clock, so a replay reads the same times.
type calendar struct {
	interceptor.InterceptorBase

	Began         time.Time
	Awake, Asleep time.Duration
	Hours         int // after these hours time passes at the speed of a real clock again
}

// parseCalendar parses the output of String.
func parseCalendar(text string) (*calendar, error) {
	c := &calendar{}
	return c, json.Unmarshal([]byte(text), c)
}

func (c *calendar) String() string {
	text, err := json.Marshal(map[string]any{"Began": c.Began, "Awake": c.Awake, "Asleep": c.Asleep, "Hours": c.Hours})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// hour returns the real time at which the nth hour begins.
func (c *calendar) hour(n int) time.Time { return c.Began.Add(time.Duration(n) * (c.Awake + c.Asleep)) }

// speed returns how many times faster than real time the calendar runs during Asleep.
func (c *calendar) speed() float64 { return float64(time.Hour-c.Awake) / float64(c.Asleep) }

// The method `at` converts a real time into the calendar's time.
func (c *calendar) at(real time.Time) time.Time {
	n := c.hours(real.Sub(c.Began), c.Awake+c.Asleep)
	rest := real.Sub(c.hour(n))
	if over := rest - c.Awake; over > 0 && n < c.Hours {
		rest = c.Awake + time.Duration(float64(over)*c.speed())
	}
	return c.Began.Add(time.Duration(n)*time.Hour + rest)
}

// The method `when` converts a time of the calendar into the real time.
func (c *calendar) when(at time.Time) time.Time {
	n := c.hours(at.Sub(c.Began), time.Hour)
	rest := at.Sub(c.Began) - time.Duration(n)*time.Hour
	if over := rest - c.Awake; over > 0 && n < c.Hours {
		rest = c.Awake + time.Duration(float64(over)/c.speed())
	}
	return c.hour(n).Add(rest)
}

func (c *calendar) hours(since, each time.Duration) int {
	return min(max(0, int(since/each)), c.Hours)
}

// InterceptWorkflow makes a workflow use the calendar.
func (c *calendar) InterceptWorkflow(ctx workflow.Context,
	next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	in := &calendarInbound{c: c}
	in.Next = c.InterceptorBase.InterceptWorkflow(ctx, next)
	return in
}

type calendarInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	c *calendar
}

func (i *calendarInbound) Init(out interceptor.WorkflowOutboundInterceptor) error {
	o := &calendarOutbound{c: i.c}
	o.Next = out
	return i.Next.Init(o)
}

// calendarOutbound intercepts the two uses of time in our workflows: reading the clock, and starting a timer.
type calendarOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	c *calendar
}

func (o *calendarOutbound) Now(ctx workflow.Context) time.Time { return o.c.at(o.Next.Now(ctx)) }

func (o *calendarOutbound) NewTimer(ctx workflow.Context, d time.Duration) workflow.Future {
	now := o.Next.Now(ctx)
	return o.Next.NewTimer(ctx, max(o.c.when(o.c.at(now).Add(d)).Sub(now), time.Millisecond))
}

// Each hour passes, each time occurs once, and a timer fires at its time in the calendar.
func TestCalendarPassesEachHour(t *testing.T) {
	c := &calendar{Began: time.Unix(1_700_000_000, 0).UTC(), Awake: 20 * time.Second, Asleep: 5 * time.Second, Hours: 3}
	again, err := parseCalendar(c.String())
	require.NoError(t, err)
	require.Equal(t, c, again)
	require.Equal(t, c.Began.Add(-time.Minute), c.at(c.Began.Add(-time.Minute)), "it has not begun")
	require.Equal(t, c.Began.Add(7*time.Second), c.at(c.Began.Add(7*time.Second)))
	require.Equal(t, c.Began.Add(time.Hour), c.at(c.hour(1)))
	require.Equal(t, c.Began.Add(3*time.Hour), c.at(c.hour(3)))
	require.Equal(t, c.Began.Add(3*time.Hour+time.Hour), c.at(c.hour(3).Add(time.Hour)), "its hours are over")
	last := c.at(c.Began.Add(-2 * time.Second))
	for real := c.Began.Add(-time.Second); real.Before(c.hour(5)); real = real.Add(77 * time.Millisecond) {
		now := c.at(real)
		require.True(t, now.After(last), "%s after %s", now, last)
		require.WithinDuration(t, real, c.when(now), time.Microsecond)
		last = now
	}
}
