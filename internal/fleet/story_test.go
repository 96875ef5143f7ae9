package fleet_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// TestStories plays the files of testdata/stories. A story states the inputs of a group, a driver or a provider, and
// their effects. A line that begins with a time is an input: a verb and its words. The indented lines below it are the
// effects. Commands begin with ->, and all other effects are changed states. A comment begins with #. To write the
// indented lines again, run go test -update.
//
// The words of the stories: a driver is the ScaleOut or ScaleIn workflow of an instance. A view is a driver's report
// to its group, and an order is a message of the group to a driver. A fact is a worker's report about a Node. A round
// is one pass of the observer, which compares the objects that exist with the published states. A group whose history
// was reverted, for example by a restored backup, starts a new epoch.
//
// The group is called a, and its instances a-1, a-2 and so on. An instance of its second epoch is a-e2-1, and one
// from before its first epoch is a-e0-1. If the group books an instance under a used number after its history was
// reverted, the instance is a-1~2. An attempt's objects are written a-1-2@milan:whole, with the instance, the
// attempt, the provider, and one of these words: whole, unready, unstamped, nodeless, joining, slice or leaving.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txt")
	require.NoError(t, err)
	require.Greater(t, len(files), 25)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			got := tellStory(t, filepath.Base(file), string(want))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			require.Equal(t, string(want), got, "run go test ./internal/fleet -update and read what changed")
		})
	}
}

// teller plays one line and returns its effects.
type teller interface {
	tell(verb string, w words, now time.Time) []string
}

func tellStory(t *testing.T, file, text string) string {
	s := &subject{T: t, booked: map[string]string{}}
	var played teller
	switch kind, _, _ := strings.Cut(file, "-"); kind {
	case "group":
		played = &groupStory{subject: s}
	case "round":
		played = &roundStory{groupStory: &groupStory{subject: s}, providers: map[string]fleet.ProviderSnapshot{},
			cordoned: map[string]bool{}}
	case "driver":
		played = &driverStory{subject: s}
	default:
		played = &providerStory{subject: s}
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		out.WriteString(line)
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		at, err := time.Parse(time.TimeOnly, fields[0])
		require.NoError(t, err, "%q", line)
		now := t0.Truncate(24 * time.Hour).Add(at.Sub(at.Truncate(24 * time.Hour)))
		for _, follows := range played.tell(fields[1], s.words(fields[2:]), now) {
			fmt.Fprintf(&out, "  %s\n", s.short(follows))
		}
	}
	return out.String()
}

// subject holds the epochs of the story's group, and the names that the group has booked. It uses the epochs to
// shorten names.
type subject struct {
	*testing.T
	epochs []string
	booked map[string]string // the long name, by the short name
}

func life(n int) string {
	if n == 1 {
		return "a-"
	}
	return fmt.Sprintf("a-e%d-", n)
}

// short replaces each booked name by its short form, which has no prefix.
func (s *subject) short(text string) string {
	text = strings.ReplaceAll(text, fleet.ObjectPrefix, "")
	for short, long := range s.booked {
		text = regexp.MustCompile(long+`\b`).ReplaceAllString(text, short)
	}
	text = strings.ReplaceAll(text, "a-t0-", "a-e0-")
	for n, epoch := range s.epochs {
		text = strings.ReplaceAll(text, "a-"+epoch+"-", life(n+1))
		text = strings.ReplaceAll(text, "standby/a/"+epoch+"-", "standby/"+life(n+1))
	}
	return text
}

var (
	shortName   = regexp.MustCompile(`^a-(e\d+-)?\d+(~\d+)?`)
	shortObject = regexp.MustCompile(shortName.String() + `-\d`)
)

// long returns the booked name for a short name. A name that the group has not booked contains its epoch in place of
// the time of its booking. The name of an object has a prefix.
func (s *subject) long(name string) string {
	if shortObject.MatchString(name) {
		return fleet.ObjectPrefix + s.longName(name)
	}
	return s.longName(name)
}

func (s *subject) longName(name string) string {
	short := shortName.FindString(name)
	if long := s.booked[short]; long != "" {
		return long + name[len(short):]
	}
	for n, epoch := range slices.Concat([]string{"t0"}, s.epochs) {
		if rest, ok := strings.CutPrefix(name, life(n)); ok && short != "" && (n != 1 || !strings.HasPrefix(rest, "e")) {
			return "a-" + epoch + "-" + rest
		}
	}
	return name
}

// epochOf returns the epoch of a name.
func (s *subject) epochOf(name string) string {
	short := s.short(name)
	for n, epoch := range slices.Concat([]string{"t0"}, s.epochs) {
		if n != 1 && strings.HasPrefix(short, life(n)) {
			return epoch
		}
	}
	return s.epochs[0]
}

// books registers the name of an instance that the group has booked in the epoch.
func (s *subject) books(name, epoch string) {
	_, seq, _ := fleet.ParseInstanceName("a", name)
	short := fmt.Sprint(life(1+slices.Index(s.epochs, epoch)), seq)
	for n := 2; s.booked[short] != "" && s.booked[short] != name; n++ {
		short, _, _ = strings.Cut(short, "~")
		short = fmt.Sprintf("%s~%d", short, n)
	}
	s.booked[short] = name
}

// requireSame fails when the published state has changed although its revision has not.
func (s *subject) requireSame(before, after any) {
	was, err := json.Marshal(before)
	require.NoError(s, err)
	is, err := json.Marshal(after)
	require.NoError(s, err)
	require.JSONEq(s, string(was), string(is), "what is published has changed under one revision")
}

// words are the words of a line: plain words, and pairs key=value.
type words struct {
	plain []string
	pairs map[string]string
}

func (s *subject) words(fields []string) words {
	w := words{pairs: map[string]string{}}
	for _, f := range fields {
		if key, value, ok := strings.Cut(f, "="); ok {
			w.pairs[key] = value
		} else {
			w.plain = append(w.plain, s.long(f))
		}
	}
	return w
}

func (w words) has(word string) bool { return contains(w.plain, word) }

func (w words) first() string {
	if len(w.plain) == 0 {
		return ""
	}
	return w.plain[0]
}

func (s *subject) number(text string, otherwise int) int {
	if text == "" {
		return otherwise
	}
	n := 0
	_, err := fmt.Sscan(text, &n)
	require.NoError(s, err, "%q", text)
	return n
}

func (s *subject) amount(text string) float64 {
	if text == "" {
		return 0
	}
	amount, err := strconv.ParseFloat(text, 64)
	require.NoError(s, err, "%q", text)
	return amount
}

// objects parses the objects of attempts, such as a-1-2@milan:whole, separated by commas.
func (s *subject) objects(text string) (found []fleet.Found) {
	for one := range strings.SplitSeq(text, ",") {
		name, state, _ := strings.Cut(one, ":")
		name, provider, ok := strings.Cut(s.long(name), "@")
		if !ok {
			continue
		}
		at := fleet.Attempt{Group: "a", Instance: fleet.InstanceOfKey(name), Number: fleet.AttemptOfKey(name),
			Provider: fleet.Provider{ID: provider}}
		f := fleet.Found{Attempt: at, Slice: true, Booking: &fleet.Booking{Spec: storySpec().InstanceSpec,
			BookedAt: t0.Truncate(24 * time.Hour).Add(12 * time.Hour)}}
		f.Virtual, f.Node = state != "slice", state != "slice"
		f.Marked, f.Stamped = state == "whole" || state == "unready", state == "whole" || state == "unready" ||
			state == "leaving"
		f.Ready = state == "whole"
		switch state {
		case "nodeless": // its virtual kubelet has not registered the Node again
			f.Marked, f.Node = true, false
		case "unstamped":
			f.Marked, f.Ready = true, true
		}
		if state == "unreadable" { // its virtual node does not name the instance
			f.Booking = nil
		}
		found = append(found, f)
	}
	return found
}

func storySpec() *fleet.GroupSpec {
	s := spec()
	s.ID = "a"
	s.Budgets = s.Budgets.WithDefaults()
	return s
}

func commandText(c fleet.Command) string {
	text := string(c.Kind)
	for _, part := range []string{string(c.Driver), c.Instance, strings.Join(c.Instances, " ")} {
		if part != "" {
			text += " " + part
		}
	}
	if c.Hold != nil {
		text += fmt.Sprintf(" %s %s at %s", c.Hold.Kind, c.Hold.Key, c.Provider)
	}
	if c.Attempt != nil {
		text += " " + c.Attempt.ObjectName() + " on " + c.Attempt.Provider.ID
	}
	if o := c.Order; o != nil {
		for word, is := range map[string]bool{"stop": o.Stop, "deleted": o.Deleted, "lost": o.Lost, "retry": o.Retry,
			"paused": o.Paused} {
			if is {
				text += ": " + word
			}
		}
		if o.Resend > 0 {
			text += fmt.Sprintf(": resend %d, attempt %d", o.Resend, o.Attempt)
		}
	}
	if c.Answer != nil {
		text = fmt.Sprintf("answer %s %s: %s", c.Driver, c.Answer.Key, c.Answer.State)
		if f := c.Answer.Failure; f != nil {
			text += fmt.Sprintf(", %s: %s", f.Code, f.Message)
		}
	}
	if !c.NotBefore.IsZero() {
		text += " at " + c.NotBefore.Format(time.TimeOnly)
	}
	return "-> " + text
}
