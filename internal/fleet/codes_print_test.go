package fleet

import (
	"fmt"
	"strings"
)

const codesIntro = `# Failure codes

Generated from the table in ` + "`internal/fleet/failure.go`" + ` by ` + "`make update`" + `.

A failed instance, attempt, peering or step has one of these codes. ` + "`liqo-autoscaler status`" + ` and ` + "`explain`" + ` show the code, messages of
Kubernetes Events begin with it, and metrics have it as the label ` + "`code`" + `. Cluster Autoscaler shows it as the error code of an instance,
and as the label ` + "`reason`" + ` of its metric ` + "`failed_scale_ups_total`" + `.

| code | means | what to do |
|---|---|---|
`

const codesJudged = `
## How each code is handled

- *Error class*: the class that Cluster Autoscaler receives with the error. It changes only texts of Cluster Autoscaler, not its decisions.
- *A step that fails with it*: the step either ends, because the provider refused, or is retried until its budget is used up.
- *After a refused hold, the provider*: after a provider has refused a hold with the code, the instance either may request a hold there
  again, or tries only other providers.
- *Counts against the provider*: the failure lowers the rank of the provider in a node group that weighs [` + "`selection.failures`" + `](cluster-autoscaler.md#which-provider-a-scale-out-takes).
- *The provider rests*: after a failed peering with the code, the worker creates no peering with the provider for 15 seconds to 10 minutes.
- *Text*: the message names the stage alone, or the stage and the error that ended the wait.

Each row has a value in each column, even where the code cannot occur. For example, no step fails with ` + "`Paused`" + `.

| code | error class | a step that fails with it | after a refused hold, the provider | counts against the provider | the provider rests | text |
|---|---|---|---|---|---|---|
`

// CodesPage renders CodeTable as the documentation page of the codes.
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
