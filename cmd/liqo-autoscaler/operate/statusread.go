package operate

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

type statusFlags struct {
	groups     []string
	output     string
	watch      bool
	kubeconfig string
	market     serve.Published
}

func (f statusFlags) check() error {
	if f.watch && f.output == "yaml" {
		return errors.New("--watch prints tables or JSON lines: use another --output")
	}
	return output.CheckFormat(f.output)
}

// read reads what can be read, but not what the instances wait for; what cannot is the error. The market may be nil.
func (f statusFlags) read(ctx context.Context, groups *flow.Groups, entities *flow.Entities, hub *flow.Hub,
	m *market.Market) (show.Status, error) {
	var known market.Market // what Temporal's index has lost is read all the same
	if m != nil {
		known = *m
	}
	snapshots, err := f.snapshots(ctx, groups, known.Groups...)
	if len(snapshots) == 0 && err != nil {
		return show.Status{}, err
	}
	providers, unread := entities.Providers(ctx, known.Providers()...)
	ended, unknown := hub.Ended(ctx)
	unread = errors.Join(unread, unknown)
	all, unknown := f.sharing(ctx, groups, snapshots)
	unread = errors.Join(unread, unknown)
	status := show.StatusOf(ended.Rows, all...).Of(f.groups).With(providers)
	status.Refusing = show.RefusingOf(providers)
	if m != nil {
		status = status.Priced(all, ended.Rows, m.Candidates(), time.Now())
		status = status.Found(m.Findings.Of(f.groups))
	}
	return status, errors.Join(err, unread)
}

// snapshots reads the groups that were asked for, or all that run. It returns what it could read with the error.
func (f statusFlags) snapshots(ctx context.Context, groups *flow.Groups, more ...string) ([]fleet.Snapshot, error) {
	names, err := f.names(ctx, groups)
	if err != nil {
		return nil, err
	}
	if len(f.groups) == 0 {
		names = append(names, more...)
		slices.Sort(names)
		names = slices.Compact(names)
	}
	return connect.ReadAll(names, len(f.groups) == 0,
		func(name string) (fleet.Snapshot, error) {
			s, err := groups.Snapshot(ctx, name)
			s.Cost, _ = s.Cost.Until(time.Now())
			return s, f.known(ctx, groups, name, err)
		})
}

// sharing returns the snapshots of the groups in f. When one of these groups shares its account, it adds all groups
// that run.
func (f statusFlags) sharing(ctx context.Context, groups *flow.Groups,
	asked []fleet.Snapshot) ([]fleet.Snapshot, error) {
	// Another group may name the id of one with limits as its account.
	limited := func(s fleet.Snapshot) bool { return s.Spec != nil && s.Spec.Spending != nil }
	if len(f.groups) == 0 || !slices.ContainsFunc(asked, limited) {
		return asked, nil
	}
	names, err := groups.Running(ctx)
	if err != nil {
		return asked, err
	}
	others := statusFlags{groups: slices.DeleteFunc(names, func(n string) bool { return slices.Contains(f.groups, n) })}
	if len(others.groups) == 0 {
		return asked, nil
	}
	more, err := others.snapshots(ctx, groups)
	return slices.Concat(asked, more), err
}

// known adds the groups that run to the error about a group that does not run.
func (f statusFlags) known(ctx context.Context, groups *flow.Groups, name string, err error) error {
	if len(f.groups) == 0 {
		return err
	}
	return groups.Unknown(ctx, name, err)
}

func (f statusFlags) names(ctx context.Context, groups *flow.Groups) ([]string, error) {
	if len(f.groups) > 0 {
		return slices.Compact(slices.Sorted(slices.Values(f.groups))), nil
	}
	return groups.Running(ctx)
}
