package fleet

import (
	"fmt"
	"strings"
)

const codesIntro = `# Failure codes

Generated from the table in ` + "`internal/fleet/failure.go`" + ` by ` + "`make update`" + `.

What fails has one of these codes: an instance, an attempt, a peering, a step. ` + "`liqo-autoscaler status` and `explain`" + ` show it, Events
of the cluster begin with it, metrics have it as the label ` + "`code`" + `, and Cluster Autoscaler shows it as the error code of an instance
and counts by it in ` + "`failed_scale_ups_total`" + `.

| code | means | what to do |
|---|---|---|
`

const codesJudged = `
## How each is judged

- *Error class*: Cluster Autoscaler's. It changes texts there, and no decision.
- *A step that meets it* ends, because the provider said no; or it is tried again until its budget is used up.
- *A hold refused with it*: the instance may ask the same provider again, or asks it no more.
- *Counts against the provider*: in a node group that weighs ` + "[`selection.failures`](cluster-autoscaler.md#which-provider-a-scale-out-takes)" + `.
- *The provider rests* for 15 seconds to 10 minutes, if a peering failed with it.
- *Text*: of the stage alone, or with the error that ended the wait.

A judgement matters only where its code can occur; no step, for instance, meets ` + "`Paused`" + `.

| code | error class | a step that meets it | a hold refused with it | counts against the provider | the provider rests | text |
|---|---|---|---|---|---|---|
`

// CodesPage returns CodeTable as the page of the codes.
func CodesPage() string {
	var b strings.Builder
	b.WriteString(codesIntro)
	for _, r := range CodeTable {
		more := ""
		if r.Page != "" {
			more = " ([more](" + r.Page + "))"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s%s |\n", r.Code, r.Means, r.Remedy, more)
	}
	b.WriteString(codesJudged)
	for _, r := range CodeTable {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", r.Code, r.Class,
			either(r.Final, "ends", "is tried again"), either(r.Again, "may ask again", "asks no more"),
			either(r.Blames, "yes", "no"), either(r.Rests, "yes", "no"), either(r.OfStage, "stage", "with error"))
	}
	return b.String()
}

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
