package fleet

import "slices"

// Failover is a move of Machine back to Discovering, where the instance looks for another provider: the one of the
// attempt that is over is refused for the rest of the instance's life, unless nobody is to blame. What the attempt may
// have made is undone beside it, so a provider that does not answer holds nothing up.
var (
	failover = Move{To: Discovering, Blame: true, Undo: true} // something may have been made
	declined = Move{To: Discovering, Blame: true}             // nothing was
)

// refuse has the instance ask a provider no more.
func (i *Instance) refuse(provider string) {
	if provider != "" && !slices.Contains(i.Refused, provider) {
		i.Refused = append(slices.Clone(i.Refused), provider)
	}
}
