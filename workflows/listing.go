package workflows

import (
	"maps"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Search attributes by which people find our workflows in Temporal's list, all of type Keyword. Nothing decides by them:
// the list lags behind, and a namespace may have none of them.
const (
	AttributeGroup    = "LiqoGroup"
	AttributeInstance = "LiqoInstance"
	AttributeProvider = "LiqoProvider"
	// AttributePhase is an instance's phase, or a provider's: no word is both.
	AttributePhase = "LiqoPhase"
)

// SearchAttributes are the names of all of them.
func SearchAttributes() []string {
	return []string{AttributeGroup, AttributeInstance, AttributeProvider, AttributePhase}
}

// listed are the values of one workflow's search attributes; "" is none. They are ids, of at most 63 characters, and
// words of ours.
type listed struct{ group, instance, provider, phase string }

// listing is how one workflow appears in Temporal's list.
type listing struct {
	registered func() bool
	now        listed
}

type registeredKey struct{}

// newListing begins a run's listing. It takes the worker's answer from the workflow function's own context, because those
// of update handlers do not have it.
func newListing(ctx workflow.Context) *listing {
	registered, ok := ctx.Value(registeredKey{}).(func() bool)
	if !ok {
		registered = func() bool { return false }
	}
	return &listing{registered: registered}
}

// show upserts what has changed, at the cost of one event; nothing else costs any, but the first answer of a run.
//
// An upsert of an attribute that the namespace does not have fails the workflow's task again and again. So the worker is
// asked each time whether it has them, and the history keeps the answer when it differs from the last: workers may
// disagree, attributes may be registered or removed while the workflow runs, and a task that failed because of them
// comes out right at its next try once a worker knows. What was not shown is shown at the next change.
func (l *listing) show(ctx workflow.Context, want listed) {
	var changes []temporal.SearchAttributeUpdate
	change := func(name, was, value string) {
		switch key := temporal.NewSearchAttributeKeyKeyword(name); value {
		case was:
		case "":
			changes = append(changes, key.ValueUnset())
		default:
			changes = append(changes, key.ValueSet(value))
		}
	}
	change(AttributeGroup, l.now.group, want.group)
	change(AttributeInstance, l.now.instance, want.instance)
	change(AttributeProvider, l.now.provider, want.provider)
	change(AttributePhase, l.now.phase, want.phase)
	if len(changes) == 0 || !l.on(ctx) {
		return
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, changes...); err != nil {
		workflow.GetLogger(ctx).Warn("set search attributes", "error", err)
		return
	}
	l.now = want
}

// on is the worker's answer, as the history has it.
func (l *listing) on(ctx workflow.Context) bool {
	var on bool
	err := workflow.MutableSideEffect(ctx, "search-attributes", func(workflow.Context) any { return l.registered() },
		func(a, b any) bool { return a == b }).Get(&on)
	return err == nil && on
}

// continueAsNew leaves our search attributes behind, which the SDK would hand on: the next run shows them anew if it can,
// and one that cannot must not fail to begin because of them. The SDK has no other way to say so than the field it takes
// them from.
func continueAsNew(ctx workflow.Context, workflowType string, in any) error {
	info := workflow.GetInfo(ctx)
	rest := maps.Clone(info.SearchAttributes.GetIndexedFields()) //nolint:staticcheck // deprecated for reading typed values
	for _, name := range SearchAttributes() {
		delete(rest, name)
	}
	info.SearchAttributes = &common.SearchAttributes{IndexedFields: rest} //nolint:staticcheck // as above
	return workflow.NewContinueAsNewError(ctx, workflowType, in)
}
