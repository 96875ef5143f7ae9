package fleet_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// A thousand objects with their bookings fit into one payload and decode unchanged.
func TestFoundsAreSmallOnTheWire(t *testing.T) {
	spec := fleet.InstanceSpec{ID: "standard", Labels: map[string]string{"a": strings.Repeat("long", 50)}}
	var all fleet.Founds
	for n := range 1000 {
		all = append(all, fleet.Found{
			Attempt: fleet.Attempt{Group: "standard", Instance: fmt.Sprint("standard-t0-", n), Number: 1},
			Booking: &fleet.Booking{Spec: spec, BookedAt: time.Unix(int64(n), 0).UTC()}, Slice: true,
		})
	}
	text, err := json.Marshal(fleet.Differences{Found: all})
	require.NoError(t, err)
	require.Less(t, len(text), 64<<10)
	var back fleet.Differences
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, all, back.Found)

	text, err = json.Marshal(fleet.Differences{})
	require.NoError(t, err)
	require.NotContains(t, string(text), "found")
	require.Error(t, json.Unmarshal([]byte(`{"found":"bm8="}`), &back), "not compressed")
}

// Data that cannot be encoded or decoded causes an error. Decoding replaces the earlier content of the value and does
// not mix with it.
func TestCodecErrors(t *testing.T) {
	_, err := fleet.Encode(make(chan int))
	require.ErrorContains(t, err, "encode chan int")
	packed, err := fleet.Encode("text")
	require.NoError(t, err)
	var text string
	require.ErrorContains(t, fleet.Decode([]byte("no"), &text), "decompress *string")
	require.ErrorContains(t, fleet.Decode(packed[:len(packed)-9], &text), "decompress *string")
	var number int
	require.ErrorContains(t, fleet.Decode(packed, &number), "decode *int")
	require.NoError(t, fleet.Decode(packed, &text))

	founds := fleet.Founds{{Slice: true}}
	require.Error(t, json.Unmarshal([]byte("7"), &founds))
	require.NoError(t, json.Unmarshal([]byte("null"), &founds))
	require.Len(t, founds, 1)
	one, err := json.Marshal(fleet.Founds{{Attempt: fleet.Attempt{Number: 2}}})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(one, &founds))
	require.Equal(t, fleet.Founds{{Attempt: fleet.Attempt{Number: 2}}}, founds)
}
