package fleet

import "slices"

// failover and declined are moves of Machine back to Discovering, where the instance searches for another provider. The
// provider of the ended attempt is refused for the rest of the instance's life, unless the event blames no provider. An
// undo removes the attempt's objects concurrently, so that a provider that does not answer delays nothing.
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
