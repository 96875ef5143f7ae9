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

// The outcomes.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped" // the provider has nothing to try it on
)

// Rule is one thing that CA takes for granted of a provider.
type Rule struct {
	// ID names the rule for ever.
	ID string `json:"id"`
	// Demands is the rule, in one sentence.
	Demands string `json:"demands"`
	// Source is where CA relies on it, and what it does otherwise.
	Source string `json:"source"`
	// Fix is what to do about a provider that breaks it.
	Fix string `json:"fix"`
	// Changes tells that checking it changes the target size of Options.Group, for a moment.
	Changes bool `json:"changes"`

	ofInstances bool // without instances there is nothing to see
	again       bool // it compares several answers, between which something may change
	// check looks at the provider. Like a test it ends where fail or skip is called, and passes otherwise.
	check func(ctx context.Context, p *provider)
}

// Result is what was seen of a rule.
type Result struct {
	Rule    `json:",inline"`
	Outcome Outcome `json:"outcome"`
	// Seen is what the provider did, or why the rule was skipped; "" when there is nothing to say.
	Seen string `json:"seen,omitempty"`
}

// Options say what to check and how patiently.
type Options struct {
	// Group is the node group that the rules with Changes use; "" leaves them out. It must be at rest: nothing on its way,
	// and no CA that uses it.
	Group string
	// Second is another node group, which may share the room of Group. One rule makes a node in it; "" skips that rule.
	Second string
	// Timeout bounds each call; default 5 s, as in CA.
	Timeout time.Duration
	// Settle is how long a call that was given up is watched for a late effect; default 2 s. A provider that does not know
	// yet what became of it may fail Refresh for thirty times as long.
	Settle time.Duration

	// Clock measures how long answers take; default time.Now. One that stands still leaves that out.
	Clock func() time.Time

	began func(id string) // told each rule that begins, and "" when it ends
}

// Room that Options.Group must have between target and max: enough for the rules, and little enough that a provider
// which bounds nothing does no harm.
const (
	leastRoom = 3
	mostRoom  = 20
)

// Rules are all rules, in the order in which they are checked.
func Rules() []Rule {
	rules := append(readingRules(), instanceRules()...)
	rules = append(rules, describingRules()...)
	for _, r := range append(append(growingRules(), shrinkingRules()...), deletingRules()...) {
		r.Changes = true
		rules = append(rules, r)
	}
	return rules
}

// Check checks the rules one after the other and returns a result for each. Its error says that Options.Group cannot be
// used, or that ctx has ended; the results so far come with it. What was made is deleted again, also then.
func Check(ctx context.Context, client protos.CloudProviderClient, o Options) ([]Result, error) {
	p := newProvider(client, o)
	// CA lists instances before its first Refresh, but a provider may be that young.
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

// try checks a rule. Its error says that something is left of what that made.
func (p *provider) try(ctx context.Context, rule Rule) (seen outcome, left error) {
	p.began(rule.ID)
	seen = p.seen(ctx, rule)
	made := rule.Changes
	if rule.ofInstances && seen.verdict == Skipped && p.Group != "" {
		made = true
		if _, _, err := p.grow(ctx, 1); err == nil {
			seen = p.seen(ctx, rule)
		}
	}
	p.began("")
	if made {
		left = p.giveBack(ctx)
	}
	return seen, left
}

// looks is how often a rule looks at what may change meanwhile.
const looks = 3

// seen is what a check of the rule sees.
func (p *provider) seen(ctx context.Context, rule Rule) (seen outcome) {
	for range looks {
		seen = p.judge(func() { rule.check(ctx, p) })
		if seen.verdict != Failed || !rule.again {
			break
		}
	}
	return seen
}

// outcome is what a check has seen.
type outcome struct {
	verdict Outcome
	text    string
}

// judge runs a check until it ends.
func (p *provider) judge(check func()) (seen outcome) {
	defer func() {
		cause := recover()
		if ended, ok := cause.(outcome); ok {
			seen = ended
		} else if cause != nil {
			panic(cause)
		}
	}()
	p.said = ""
	check()
	return outcome{Passed, p.said}
}

// says notes what is to be told of a check that passes.
func (p *provider) says(format string, args ...any) { p.said = fmt.Sprintf(format, args...) }

// end ends the check that is running, see judge.
func end(verdict Outcome, format string, args ...any) {
	panic(outcome{verdict, fmt.Sprintf(format, args...)})
}

func fail(format string, args ...any) { end(Failed, format, args...) }
func skip(format string, args ...any) { end(Skipped, format, args...) }

// failOn fails for an error, if there is one.
func failOn(err error) {
	if err != nil {
		fail("%v", err)
	}
}

// skipOn skips for an error, if there is one.
func skipOn(err error) {
	if err != nil {
		skip("%v", err)
	}
}
