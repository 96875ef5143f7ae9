package e2e_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// entry is one line of our worker's log: where an instance or a peering went, and why. It is what an operator reads.
type entry struct {
	message  string
	instance string
	attempt  int
	provider string
	from     string
	event    string
	phase    string
	failure  string
}

func (e entry) String() string {
	return fmt.Sprintf("%s of %s/%d on %s: %s --%s--> %s: %s", e.message, e.instance, e.attempt, e.provider, e.from,
		e.event, e.phase, e.failure)
}

// journal is what the worker has logged of phases so far, workers killed since included.
func (s *stack) journal(keep func(entry) bool) ([]entry, error) {
	f, err := os.Open(s.worker.Log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []entry
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line map[string]any // a struct would take the SDK's "Attempt" for our "attempt"
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue // a panic's trace, or a line that is being written
		}
		text := func(key string) string { v, _ := line[key].(string); return v }
		number, _ := line["attempt"].(float64)
		e := entry{message: text("msg"), instance: text("instance"), attempt: int(number), provider: text("provider"),
			from: text("from"), event: text("event"), phase: text("phase"), failure: text("failure")}
		if e.phase != "" && keep(e) {
			out = append(out, e)
		}
	}
	return out, lines.Err()
}

// givenUp is why an attempt of an instance ended, in the words of the log: of the next attempt's line, or the last
// one's.
func (s *stack) givenUp(instance string, attempt int) (entry, error) {
	found, err := s.journal(func(e entry) bool {
		ended := e.attempt == attempt+1 || e.attempt == attempt && e.phase == string(fleet.Failed)
		return e.instance == instance && ended && e.failure != ""
	})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("attempt %d of instance %s has not ended", attempt, instance)
	}
	if err != nil {
		return entry{}, err
	}
	return found[0], nil
}

// names wants all words in a failure: the first unmet stage, and what Liqo itself says of it.
func names(failure string, words ...string) error {
	var missing []error
	for _, w := range words {
		if !strings.Contains(failure, w) {
			missing = append(missing, fmt.Errorf("%q is not in %q", w, failure))
		}
	}
	return errors.Join(missing...)
}

// instanceName is the name in an instance id, liqo://<group>/<name>.
func instanceName(id string) string { return id[strings.LastIndex(id, "/")+1:] }
