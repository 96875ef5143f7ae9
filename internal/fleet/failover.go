package fleet

import "slices"

// failover and declined are moves of Machine back to Discovering, where the instance searches for another provider. If
// the event blames the provider of the ended attempt, the instance no longer uses this provider. An undo removes the
// attempt's objects concurrently. So a provider that does not answer does not delay the search.
var (
	failover = Move{To: Discovering, Blame: true, Undo: true} // objects may exist
	declined = Move{To: Discovering, Blame: true}             // no objects exist
)

// refuse excludes a provider from the instance's further attempts.
func (i *Instance) refuse(provider string) {
	if provider != "" && !slices.Contains(i.Refused, provider) {
		i.Refused = append(slices.Clone(i.Refused), provider)
	}
}
