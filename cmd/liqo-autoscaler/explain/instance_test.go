package explain_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/explain"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// recorded reads the history of a workflow from a file. A Temporal dev server has recorded it, see `make histories`.
func recorded(t *testing.T, file string) []*history.HistoryEvent {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "workflows", "testdata", "histories", file))
	require.NoError(t, err)
	var h history.History
	require.NoError(t, protojson.Unmarshal(text, &h))
	return h.GetEvents()
}

type said struct {
	attempt int
	what    string
	code    fleet.Code
}

func sayings(records []explain.Record) (all []said) {
	for _, r := range records {
		s := said{attempt: r.Attempt, what: r.What}
		if r.Failure != nil {
			s.code = r.Failure.Code
		}
		all = append(all, s)
	}
	return all
}

// A provider refuses the node, and the next provider creates it. The records show both attempts.
func TestRecordsShowAFailover(t *testing.T) {
	records := explain.Records("scale-out/x", recorded(t, "refused/ScaleOut-1.json"))
	var first, second string
	for _, r := range records {
		if r.Attempt == 1 {
			first = r.Provider
		}
		second = r.Provider
	}
	require.NotEmpty(t, first)
	require.NotEqual(t, first, second)
	require.Equal(t, []said{
		{0, "started", ""}, {1, "chose " + first, ""}, {1, "the provider's workflow answered: granted", ""},
		{1, "waiting for the node failed", fleet.CodeRefused}, {2, "chose " + second, ""},
		{2, "the provider's workflow answered: granted", ""}, {2, "the node is Ready", ""}, {2, "completed", ""},
	}, sayings(records))
	require.NotEmpty(t, records[1].Offers, "with what was thought of each offer")
	require.False(t, records[1].At.IsZero())
}

// A record that cannot be decoded is omitted. The other records are shown.
func TestUnreadableRecordIsLeftOut(t *testing.T) {
	events := recorded(t, "refused/ScaleOut-1.json")
	for _, e := range events {
		for _, p := range e.GetMarkerRecordedEventAttributes().GetDetails()["result"].GetPayloads() {
			p.Data = []byte("{")
		}
		for _, p := range e.GetWorkflowExecutionSignaledEventAttributes().GetInput().GetPayloads() {
			p.Data = nil
		}
	}
	require.Equal(t, []said{{0, "started", ""}, {0, "waiting for the node failed", fleet.CodeRefused},
		{0, "the node is Ready", ""}, {0, "completed", ""}}, sayings(explain.Records("scale-out/x", events)))
	require.Empty(t, explain.Records("scale-out/x", []*history.HistoryEvent{{}}))
}

func TestInstanceIsExplainedByItsRecords(t *testing.T) {
	records := append(explain.Records("scale-in/x", recorded(t, "refused/ScaleIn-1.json")),
		explain.Records("scale-out/x", recorded(t, "refused/ScaleOut-1.json"))...)
	i := explain.OfInstance("x", "", nil, "", records)
	require.Equal(t, fleet.Released, i.Phase)
	require.Equal(t, "scale-out/x", i.Records[0].Workflow, "by time")
	require.Equal(t, i.Records[0].At, i.DataFrom)
	var text bytes.Buffer
	require.NoError(t, i.Text(&text))
	require.Contains(t, text.String(), "instance x: Released\n  no node group lists it any more\n")
	require.Regexp(t, `(?m)^  \S+  scale-out \(attempt 1, \S+\): waiting for the node failed\n    Refused: `, text.String())
	require.Regexp(t, `(?m)^  \S+  scale-in \(attempt 2, \S+\): the slice is returned$`, text.String())
	require.Contains(t, text.String(), "\ncode Refused: "+fleet.CodeRefused.Row().Means+"\n  what to do: ")

	for want, view := range map[string]fleet.InstanceView{
		"instance x: Peering, attempt 1 on milan, waiting for tenant: none\n  node lca-x-1, in this phase since ": {
			Phase: fleet.Peering, Provider: "milan", Attempt: 1},
		"instance x: Failed, NoOffer: nobody\n": {Phase: fleet.Failed,
			Failure: fleet.NewFailure(fleet.CodeNoOffer, "", "", "nobody")},
		"instance x: Draining, attempt 2 on rome, stuck: cancelled\n": {Phase: fleet.Draining, Provider: "rome", Attempt: 2,
			Stuck: "cancelled"},
		"instance x: Ready, attempt 1 on rome, its node is not ready\n": {Phase: fleet.Ready, Provider: "rome", Attempt: 1,
			NotReady: true},
	} {
		text.Reset()
		require.NoError(t, explain.OfInstance("x", "std", &view, "tenant: none", nil).Text(&text))
		require.Contains(t, text.String(), want)
		require.Contains(t, text.String(), "Temporal has no history of it")
		remedy := "\n  what to do: " + fleet.CodeNoOffer.Row().Remedy + "\n"
		require.Equal(t, view.Failure != nil, strings.Contains(text.String(), remedy), text.String())
	}
}
