package grpcserver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// compare orders a cheaper score first, then a score with more peerings, then a score with less waste. String returns
// the text of a score for CA's log.
func TestBidsAreComparedAndRendered(t *testing.T) {
	b := score{cost: 1.25, warm: 0.5, requested: 3, room: 4}
	require.Equal(t, "costs 1.25 an hour, 75 % of its capacity used, 50 % over existing peerings", b.String())
	dearer, colder, emptier := b, b, b
	dearer.cost, colder.warm, emptier.room = 1.26, 0.4, 5
	for _, worse := range []score{dearer, colder, emptier} {
		require.Negative(t, b.compare(worse))
		require.Positive(t, worse.compare(b))
	}
	require.Zero(t, b.compare(b))
	require.Zero(t, score{requested: 5, room: 4}.waste(), "more than there is room for")
	require.Equal(t, "costs 1 an hour, 100 % of its capacity used, 100 % over existing peerings",
		score{cost: 1, warm: 1, requested: 4, room: 4}.String())
}

// Sums that differ by less than a millionth count as equal, because the order of an addition changes its result.
func TestNearlyEqualSumsAreEqual(t *testing.T) {
	for _, size := range []float64{1e-6, 1, 1e6} {
		require.Zero(t, order(size, size*(1+1e-7)), size)
		require.Negative(t, order(size, size*(1+1e-5)), size)
		require.Positive(t, order(size*(1+1e-5), size), size)
	}
	require.Zero(t, order(0, 0))
	require.Negative(t, order(0, 1e-9))
}
