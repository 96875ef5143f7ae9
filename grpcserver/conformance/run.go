package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

// Outcome is the result of one rule.
type Outcome string

// These constants are the outcomes.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped" // the provider lacks the objects that the rule checks
)

// Rule describes one property that a provider must have. CA relies on the property but does not check it.
type Rule struct {
	// ID is the name of the rule; it never changes.
	ID string `json:"id"`
	// Demands is the rule in one sentence.
	Demands string `json:"demands"`
	// Source names the place where CA relies on the rule, and CA's behaviour if the rule is broken.
	Source string `json:"source"`
	// Fix is the remedy for a provider that breaks the rule.
	Fix string `json:"fix"`
	// Changes reports that the check changes the target size of Options.Group and restores it.
	Changes bool `json:"changes"`

	needsInstances bool // the check needs instances
	repeated       bool // repeat a failed check: the state may change between two answers that it compares
	// check checks the rule. A call of fail or skip ends the function check, as in a test. If check calls neither,
	// the provider conforms to the rule.
	check func(ctx context.Context, p *provider)
}

// Result is the result of the check of one rule.
type Result struct {
	Rule    `json:",inline"`
	Outcome Outcome `json:"outcome"`
	// Seen describes the provider's behaviour, or why the rule was skipped; it may be empty.
	Seen string `json:"seen,omitempty"`
}

// Options selects the rules and bounds the waiting times of their checks.
type Options struct {
	// Group names the node group that the rules with Changes use; "" excludes these rules. While the rules are
	// checked, no CA may use the group, and at the start no instance may be in creation or deletion.
	Group string
	// Second names another node group, which may share capacity with Group. One rule creates a node in it; "" skips that
	// rule.
	Second string
	// Timeout bounds each call; default 5 s, as in CA.
	Timeout time.Duration
	// Settle is the time for which a check waits after a call whose answer it did not await, because the call may
	// take effect late; default 2 s. A provider that does not know the outcome of the call may fail Refresh in the
	// meantime, for at most thirty times Settle.
	Settle time.Duration

	// Clock measures how long the provider takes to answer; default time.Now. With a clock that does not advance, all
	// durations pass.
	Clock func() time.Time

	onRule func(id string) // called with the rule's id when a check starts, and with "" when it ends
}

// These constants bound the difference between target size and max of Options.Group. minRoom is the difference that
// the rules need. maxRoom limits the number of instances that a provider creates if it does not respect max.
const (
	minRoom = 3
	maxRoom = 20
)

// Rules returns all rules, in the order in which Check checks them.
func Rules() []Rule {
	rules := append(readingRules(), instanceRules()...)
	rules = append(rules, describingRules()...)
	for _, r := range append(append(growingRules(), shrinkingRules()...), deletingRules()...) {
		r.Changes = true
		rules = append(rules, r)
	}
	return rules
}

// Check checks the rules one after the other and returns a result for each. It returns early, with an error and the
// results so far, when Options.Group cannot be used, when created instances cannot be deleted, or when ctx ends. It
// always tries to delete the instances that it created.
func Check(ctx context.Context, client protos.CloudProviderClient, o Options) ([]Result, error) {
	p := newProvider(client, o)
	// CA lists instances before its first Refresh. A provider that has just started may need the Refresh first.
	_ = p.refresh(ctx)
	if o.Group != "" {
		if err := p.prepare(ctx); err != nil {
			return nil, err
		}
	}
	var results []Result
	for _, rule := range Rules() {
		if rule.Changes && o.Group == "" {
			continue
		}
		seen, err := p.try(ctx, rule)
		if ctx.Err() != nil {
			return results, errors.Join(fmt.Errorf("ended before all rules were checked: %w", context.Cause(ctx)), err)
		}
		results = append(results, Result{Rule: rule, Outcome: seen.verdict, Seen: seen.text})
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// try checks a rule and deletes the instances that were created for it. The result `left` is the error of this
// deletion.
func (p *provider) try(ctx context.Context, rule Rule) (seen outcome, left error) {
	p.onRule(rule.ID)
	seen = p.seen(ctx, rule)
	made := rule.Changes
	if rule.needsInstances && seen.verdict == Skipped && p.Group != "" {
		made = true
		if _, _, err := p.grow(ctx, 1); err == nil {
			seen = p.seen(ctx, rule)
		}
	}
	p.onRule("")
	if made {
		left = p.deleteCreated(ctx)
	}
	return seen, left
}

// maxAttempts bounds the attempts of a check if Rule.repeated is set.
const maxAttempts = 3

// seen runs the rule's check and returns its result. If rule.repeated is set, it repeats a failed check.
func (p *provider) seen(ctx context.Context, rule Rule) (seen outcome) {
	for range maxAttempts {
		seen = p.evaluate(func() { rule.check(ctx, p) })
		if seen.verdict != Failed || !rule.repeated {
			break
		}
	}
	return seen
}

// outcome is the result of a check.
type outcome struct {
	verdict Outcome
	text    string
}

// evaluate runs a check until it returns or calls end, and returns its result.
func (p *provider) evaluate(check func()) (seen outcome) {
	defer func() {
		cause := recover()
		if ended, ok := cause.(outcome); ok {
			seen = ended
		} else if cause != nil {
			panic(cause)
		}
	}()
	p.text = ""
	check()
	return outcome{Passed, p.text}
}

// setText sets the text of Result.Seen for a check that passes.
func (p *provider) setText(format string, args ...any) { p.text = fmt.Sprintf(format, args...) }

// end ends the running check with an outcome and a text. It panics, and evaluate recovers.
func end(verdict Outcome, format string, args ...any) {
	panic(outcome{verdict, fmt.Sprintf(format, args...)})
}

func fail(format string, args ...any) { end(Failed, format, args...) }
func skip(format string, args ...any) { end(Skipped, format, args...) }

// failOn fails the check if err is not nil.
func failOn(err error) {
	if err != nil {
		fail("%v", err)
	}
}

// skipOn skips the check if err is not nil.
func skipOn(err error) {
	if err != nil {
		skip("%v", err)
	}
}
