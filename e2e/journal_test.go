package e2e_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/journal"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// givenUp returns the reason for which an attempt of an instance ended. The log contains the reason in the line of
// the next attempt or, for the last attempt, in the line of this attempt itself. Workers share the task queues, so
// any worker may have logged the reason.
func (s *stack) givenUp(instance string, attempt int) (journal.Entry, error) {
	found, err := journal.Read(s.logs["worker"], func(e journal.Entry) bool {
		ended := e.Attempt == attempt+1 || e.Attempt == attempt && e.Phase == string(fleet.Failed)
		return e.Instance == instance && ended && e.Failure != ""
	})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("attempt %d of instance %s has not ended", attempt, instance)
	}
	if err != nil {
		return journal.Entry{}, err
	}
	return found[0], nil
}

// names requires that the text of a failure contains all of the given words. They are the first stage that was not
// reached, and Liqo's own message about this stage.
func names(failure string, words ...string) error {
	var missing []error
	for _, w := range words {
		if !strings.Contains(failure, w) {
			missing = append(missing, fmt.Errorf("%q is not in %q", w, failure))
		}
	}
	return errors.Join(missing...)
}

// instanceName returns the name in an instance id, liqo://<group>/<name>.
func instanceName(id string) string { return id[strings.LastIndex(id, "/")+1:] }
