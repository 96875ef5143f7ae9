// Package journal reads our workers' logs, and returns the entries about instances and peerings.
package journal

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// Entry is one line of a worker's log: a change of the phase of an instance or a peering, and its reason. Operators
// read these lines.
type Entry struct {
	Message  string
	Instance string
	Attempt  int
	Provider string
	From     string
	Event    string
	Phase    string
	Failure  string

	at time.Time
}

func (e Entry) String() string {
	return fmt.Sprintf("%s of %s/%d on %s: %s --%s--> %s: %s", e.Message, e.Instance, e.Attempt, e.Provider, e.From,
		e.Event, e.Phase, e.Failure)
}

// Read returns the entries of all logs in one list, the oldest first, because each task of a workflow may run in
// another worker. It returns only entries for which the function `keep` returns true. A log may be from a worker that
// was killed.
func Read(logs []string, keep func(Entry) bool) ([]Entry, error) {
	var all []Entry
	for _, path := range logs {
		entries, err := read(path, keep)
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return a.at.Compare(b.at) })
	return all, nil
}

func read(path string, keep func(Entry) bool) ([]Entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var kept []Entry
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if e, ok := parse(lines.Bytes()); ok && keep(e) {
			kept = append(kept, e)
		}
	}
	return kept, lines.Err()
}

// parse parses one line of a log. It returns false for a line without a phase, and for a line that is not JSON, such
// as a panic's trace or a line that is only partly written.
func parse(raw []byte) (Entry, bool) {
	var line map[string]any // a struct would mix the SDK's "Attempt" with our "attempt"
	if json.Unmarshal(raw, &line) != nil {
		return Entry{}, false
	}
	text := func(key string) string { v, _ := line[key].(string); return v }
	number, _ := line["attempt"].(float64)
	at, _ := time.Parse(time.RFC3339Nano, text("time"))
	e := Entry{at: at, Message: text("msg"), Instance: text("instance"), Attempt: int(number),
		Provider: text("provider"), From: text("from"), Event: text("event"), Phase: text("phase"),
		Failure: text("failure")}
	return e, e.Phase != ""
}
