package operate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The first day of a report is a day in UTC, even if the local date is still the day before.
func TestFirstDayOfAReportIsInUTC(t *testing.T) {
	now := time.Date(2026, 3, 1, 23, 30, 0, 0, time.FixedZone("west", -2*3600)) // 2026-03-02 in UTC
	for text, want := range map[string]string{
		"1d": "2026-03-02", "2d": "2026-03-01", "30d": "2026-02-01", "400d": "2025-01-27",
		"2026-03-02": "2026-03-02", "2026-02-28": "2026-02-28", "1999-01-01": "2025-01-26",
	} {
		from, err := sinceDay(text, now)
		require.NoError(t, err, text)
		require.Equal(t, want, from.Format(time.DateOnly), text)
	}
	for text, says := range map[string]string{
		"": "give 1d to 400d, or a date", "0d": "give 1d to 400d", "-3d": "give 1d to 400d", "401d": "give 1d to 400d",
		"d": "give 1d", "30": "give 1d", "30h": "give 1d", "2026-13-01": "give 1d", "99999999999999999999d": "give 1d",
		"2026-03-03": "that day is in the future",
	} {
		_, err := sinceDay(text, now)
		require.ErrorContains(t, err, says, text)
	}
}
