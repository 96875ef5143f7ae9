package workflows

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// A memo value up to 8 KiB is stored as JSON that people can read in the Temporal UI. A larger value is compressed and
// has its own encoding. Both forms decode to the original value.
func TestMemoValuesAreReadableUpTo8KiB(t *testing.T) {
	for size, encoding := range map[int]string{10: converter.MetadataEncodingJSON, 7 << 10: converter.MetadataEncodingJSON,
		9 << 10: EncodingGzip, 1 << 20: EncodingGzip} {
		want := fleet.Snapshot{Group: "std", Condition: strings.Repeat("c", size)}
		value, err := memoValue(want)
		require.NoError(t, err)
		payload, err := converter.GetDefaultDataConverter().ToPayload(value) // as the SDK does
		require.NoError(t, err)
		require.Equal(t, encoding, string(payload.GetMetadata()[converter.MetadataEncoding]), size)
		if encoding == converter.MetadataEncodingJSON {
			require.Contains(t, string(payload.GetData()), `{"group":"std"`)
		} else {
			require.Less(t, len(payload.GetData()), size)
		}
		var got fleet.Snapshot
		require.NoError(t, DecodeMemo(payload, &got))
		require.Equal(t, want, got)
	}
}

// The Temporal UI shows descriptions of the signals and updates that operators may send.
func TestOperatorSignalsAndUpdatesAreDescribed(t *testing.T) {
	for _, name := range []string{SignalRetry, SignalCordon, string(fleet.Pause)} {
		require.Contains(t, description(name), "For operators")
	}
	for _, name := range []string{SignalViews, SignalFacts, SignalHolds, SignalReport, SignalDifferences, SignalOrder,
		SignalAnswer, string(fleet.Configure), string(fleet.Grow), string(fleet.Shrink), string(fleet.Release)} {
		require.Contains(t, description(name), "Internal")
	}
}
