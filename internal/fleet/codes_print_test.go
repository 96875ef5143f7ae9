package fleet

import (
	"fmt"
	"strings"
)

const codesIntro = `# Failure codes

Generated from the table in ` + "`internal/fleet/failure.go`" + ` by ` + "`make update`" + `.

A failed instance, attempt, peering or step has one of these codes. ` + "`liqo-autoscaler status` and `explain`" + ` show the code, Events
of the cluster begin with it, and metrics have it as the label ` + "`code`" + `. Cluster Autoscaler shows it as the error code of an instance, and
as the label ` + "`reason`" + ` of its metric ` + "`failed_scale_ups_total`" + `.

| code | means | what to do |
|---|---|---|
`

const codesJudged = `
## How each code is handled

- *Error class*: the class in Cluster Autoscaler. It changes texts in Cluster Autoscaler, and no decision.
- *A step that fails with it* ends, because the provider refused, or is retried until its budget is used up.
- *The instance and the provider that refused a hold with it*: the instance may request a hold from this provider again, or tries other
  providers only.
- *Counts against the provider*: the failure counts in a node group that weighs ` + "[`selection.failures`](cluster-autoscaler.md#which-provider-a-scale-out-takes)" + `.
- *The provider rests*: after a peering failed with the code, the provider gets no new peering for 15 seconds to 10 minutes.
- *Text*: the message names the stage alone, or the stage and the error that ended the wait.

A column matters only where the code can occur. For example, no step fails with ` + "`Paused`" + `.

| code | error class | a step that fails with it | after a refused hold, the provider | counts against the provider | the provider rests | text |
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
			either(r.Final, "ends", "is retried"), either(r.Again, "may be tried again", "is not tried again"),
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
