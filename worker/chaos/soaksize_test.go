package chaos

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// sizes holds, at one moment, the sizes that could grow from hour to hour.
type sizes struct {
	worker, server int64 // RSS in bytes of the process that has lived longest
	events, bytes  int64 // of the longest history of any run so far
	memo           int   // bytes of the largest memo of a running entity
	instances      int   // number of instances in that memo
}

// These constants bound the size of a history. A run continues as new at 2,000 events, but a burst of signals can
// exceed this number.
const (
	mostEvents = 5_000
	mostBytes  = 10 << 20
)

// sizes measures all sizes.
func (s *soak) sizes(ctx context.Context) (out sizes) {
	s.t.Helper()
	require.NoError(s.t, until(ctx, restLimit, func() (err error) { out, err = s.measure(ctx); return err }))
	s.m.note("test", "sizes: %+v", out)
	return out
}

func (s *soak) measure(ctx context.Context) (sizes, error) {
	out := sizes{worker: s.rss(s.s.workers[0]), server: s.rss(s.s.servers[0])}
	all, err := s.s.listAll(ctx)
	if err != nil {
		return out, err
	}
	for _, w := range all {
		info := w
		if w.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
			d, err := s.s.api.DescribeWorkflowExecution(ctx, w.GetExecution().GetWorkflowId(), w.GetExecution().GetRunId())
			if err != nil {
				return out, err
			}
			info = d.GetWorkflowExecutionInfo()
			if slices.Contains([]string{workflows.TypeNodeGroup, workflows.TypeProvider}, w.GetType().GetName()) {
				out.memo = max(out.memo, info.GetMemo().GetFields()[workflows.MemoSnapshot].Size())
			}
		}
		out.events, out.bytes = max(out.events, info.GetHistoryLength()), max(out.bytes, info.GetHistorySizeBytes())
	}
	w, err := s.s.world.Snapshot()
	if err != nil {
		return out, err
	}
	out.instances = w.Counts().Nodes
	return out, nil
}

// rss returns the memory of a process.
func (s *soak) rss(p *process) int64 {
	s.t.Helper()
	var pages, resident int64
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.pid()))
	require.NoError(s.t, err)
	_, err = fmt.Sscan(string(text), &pages, &resident)
	require.NoError(s.t, err)
	return resident * int64(os.Getpagesize())
}

func mib(n int64) string { return fmt.Sprintf("%.1f", float64(n)/(1<<20)) }

func (z sizes) rss(start sizes) string {
	return fmt.Sprintf("worker:%s->%s,server:%s->%sMiB", mib(start.worker), mib(z.worker), mib(start.server),
		mib(z.server))
}

func (z sizes) history(start sizes) string {
	return fmt.Sprintf("%d->%d events,%d->%dKiB", start.events, z.events, start.bytes>>10, z.bytes>>10)
}

func (z sizes) memos(start sizes) string {
	return fmt.Sprintf("%d->%d bytes,nodes:%d->%d", start.memo, z.memo, start.instances, z.instances)
}

// bounded checks that no size grows from hour to hour. Over a day, a size may grow by a small fixed amount, but not
// by an amount for each hour.
func (m *model) bounded(start, end sizes) {
	most := func(what string, is, most int64) {
		if is > most {
			m.violate("after a day %s is %d, and may be %d", what, is, most)
		}
	}
	const slack = 64 << 20
	most("the worker's memory", end.worker, 2*start.worker+slack)
	most("the gRPC server's memory", end.server, 2*start.server+slack)
	most("the longest history, in events,", end.events, mostEvents)
	most("the longest history, in bytes,", end.bytes, mostBytes)
	most("the largest memo", int64(end.memo), int64(2*start.memo+8<<10))
}
