package providers

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
)

// `offers` prints a note if the published market is missing, incomplete or old.
func TestOffersNotesAnOldOrMissingMarket(t *testing.T) {
	from := serve.Published{File: filepath.Join(t.TempDir(), "market.json")}
	for _, c := range []struct {
		published market.Market
		says      []string // one text for each line of the note
	}{
		{says: []string{"no market has been published"}},
		{published: market.Market{At: time.Now()}},
		{published: market.Market{At: time.Now(), Dropped: 3}, says: []string{"the market omits 3 offers"}},
		{published: market.Market{At: time.Now().Add(-time.Hour), Dropped: 3},
			says: []string{"does a worker run?", "the market omits 3 offers"}},
	} {
		if !c.published.At.IsZero() {
			require.NoError(t, market.File(from.File).Save(t.Context(), c.published))
		}
		var notes strings.Builder
		offered := offersFlags{}.published(t.Context(), "", from, &notes)
		require.Equal(t, c.published.At.IsZero(), offered == nil)
		lines := strings.SplitAfter(notes.String(), "\n")
		require.Len(t, lines, len(c.says)+1, notes.String())
		for n, says := range c.says {
			require.Contains(t, lines[n], says)
		}
	}
}
