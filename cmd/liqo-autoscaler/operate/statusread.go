package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

type statusFlags struct {
	show.Selection
	output     string
	sort       string // "" selects the default of the output
	watch      bool
	kubeconfig string
	market     serve.Published
}

func (f *statusFlags) check() error {
	if f.watch && f.output == "yaml" {
		return errors.New("--watch prints tables or JSON lines: use another --output")
	}
	if f.sort != "" {
		if err := show.CheckOrder(f.sort); err != nil {
			return err
		}
	}
	return errors.Join(output.CheckFormat(f.output), f.Check())
}

// reader has the clients that read the state of a hub.
type reader struct {
	groups   *flow.Groups
	entities *flow.Entities
	hub      *flow.Hub
}

// reading is a status together with the snapshots from which it was made. A watch compares later snapshots with them.
type reading struct {
	show.Status
	snapshots []fleet.Snapshot // of the selected groups
	providers []string         // the selected providers
	accounts  accounts
}

// accounts contains costs of groups that are not selected but count towards the spending limits of selected groups.
type accounts struct {
	ended  []money.Spent
	shared []fleet.Snapshot // other running groups, if a selected group may share its account with them
}

// read reads the status, except the events for which instances wait. If it cannot read a part, it returns the other
// parts and an error. The market m may be nil.
func (f statusFlags) read(ctx context.Context, from reader, m *market.Market) (r reading, err error) {
	var known market.Market // these groups and providers are read even if Temporal's index lacks them
	if m != nil {
		known = *m
	}
	r.snapshots, err = f.snapshots(ctx, from.groups, known.Groups...)
	if len(r.snapshots) == 0 && err != nil {
		return r, err
	}
	providers, unread := from.entities.Providers(ctx, known.Providers()...)
	ended, unknown := from.hub.Ended(ctx)
	unread = errors.Join(unread, unknown)
	all, unknown := f.sharing(ctx, from.groups, r.snapshots)
	unread = errors.Join(unread, unknown)
	r.providers, r.accounts = f.offered(providers), accounts{ended: ended.Rows, shared: all[len(r.snapshots):]}
	selected := show.Selection{Groups: f.Groups, Providers: r.providers}
	status := show.StatusOf(ended.Rows, all...).With(providers)
	status.Refusing = show.RefusingOf(providers)
	status = status.Of(selected)
	if m != nil {
		status = status.Priced(all, ended.Rows, m.Candidates(), time.Now())
		keep := selected.Finding
		if len(selected.Groups)+len(selected.Providers) == 0 {
			keep = nil
		}
		status = status.Found(m.Findings.Of(keep))
	}
	r.Status = status
	return r, errors.Join(err, unread)
}

// shown returns the part of the status with the selected phases, sorted.
func (f statusFlags) shown(s show.Status) show.Status {
	return s.Of(show.Selection{Phases: f.Phases}).Sorted(show.OrderOf(f.sort, f.output))
}

// offered returns the selected providers, and the ids of the providers whose offers have a selected name.
func (f statusFlags) offered(providers []fleet.ProviderSnapshot) []string {
	selected := slices.Clone(f.Providers)
	for _, p := range providers {
		if len(selected) > 0 && p.Offer != nil && show.Matches(f.Providers, p.Offer.Name) {
			selected = append(selected, p.ID)
		}
	}
	return selected
}

// snapshots reads the selected groups or, without a selection, all running groups. If it cannot read some groups, it
// returns the snapshots of the other groups and an error.
func (f statusFlags) snapshots(ctx context.Context, groups *flow.Groups, more ...string) ([]fleet.Snapshot, error) {
	names, err := f.names(ctx, groups)
	if err != nil {
		return nil, err
	}
	if !f.exact() {
		names = append(names, slices.DeleteFunc(more, func(n string) bool { return !show.Matches(f.Groups, n) })...)
		slices.Sort(names)
		names = slices.Compact(names)
	}
	return connect.ReadAll(names, !f.exact(),
		func(name string) (fleet.Snapshot, error) {
			s, err := groups.Snapshot(ctx, name)
			s.Cost, _ = s.Cost.Until(time.Now())
			return s, f.known(ctx, groups, name, err)
		})
}

// sharing returns the snapshots of the selected groups. If a selected group may share its account with other groups,
// sharing adds the snapshots of all other running groups.
func (f statusFlags) sharing(ctx context.Context, groups *flow.Groups,
	asked []fleet.Snapshot) ([]fleet.Snapshot, error) {
	// Other groups may share the account of a group with limits, because they may use its id as their account.
	limited := func(s fleet.Snapshot) bool { return s.Spec != nil && s.Spec.Spending != nil }
	if len(f.Groups) == 0 || !slices.ContainsFunc(asked, limited) {
		return asked, nil
	}
	names, err := groups.Running(ctx)
	if err != nil {
		return asked, err
	}
	has := func(n string) bool {
		return slices.ContainsFunc(asked, func(s fleet.Snapshot) bool { return s.Group == n })
	}
	var others statusFlags
	if others.Groups = slices.DeleteFunc(names, has); len(others.Groups) == 0 {
		return asked, nil
	}
	more, err := others.snapshots(ctx, groups)
	return slices.Concat(asked, more), err
}

// known adds the ids of the running groups to the error err, if this error means that the group with this name does
// not run.
func (f statusFlags) known(ctx context.Context, groups *flow.Groups, name string, err error) error {
	if !slices.Contains(f.Groups, name) {
		return err
	}
	return groups.Unknown(ctx, name, err)
}

// exact reports whether the selected groups are given only by names, and not by patterns. Only in this case is it an
// error if a selected group does not run.
func (f statusFlags) exact() bool {
	return len(f.Groups) > 0 && !slices.ContainsFunc(f.Groups, show.IsPattern)
}

// names returns the names in f.Groups, and the running groups that match a pattern in f.Groups. It returns an error
// if a pattern matches no running group.
func (f statusFlags) names(ctx context.Context, groups *flow.Groups) ([]string, error) {
	if f.exact() {
		return slices.Compact(slices.Sorted(slices.Values(f.Groups))), nil
	}
	running, err := groups.Running(ctx)
	if err != nil || len(f.Groups) == 0 {
		return running, err
	}
	return matching(f.Groups, running)
}

// matching returns the elements of patterns that are plain names, and the running groups that match one of the other
// elements.
func matching(patterns, running []string) (names []string, err error) {
	for _, pattern := range patterns {
		found := []string{pattern}
		if show.IsPattern(pattern) {
			found = slices.DeleteFunc(slices.Clone(running), func(n string) bool { return !show.Matches(found, n) })
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("no node group matches %s: %s", pattern, namedFew(running))
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// namedFew renders a list of groups for an error, and shortens a long list.
func namedFew(groups []string) string {
	more := ""
	if len(groups) == 0 {
		return "none runs"
	}
	if len(groups) > namedInError {
		more = fmt.Sprintf(" and %d more", len(groups)-namedInError)
		groups = groups[:namedInError]
	}
	return "there are " + strings.Join(groups, ", ") + more
}
