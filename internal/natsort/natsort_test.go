package natsort_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/natsort"
)

func TestNumbersAreComparedByValue(t *testing.T) {
	want := []string{"", "cpu", "cpu-2", "cpu-010", "cpu-11-b", "cpu-11-c", "cpu-100000000000000000000", "gpu[2].a",
		"gpu[10].a"}
	got := slices.Clone(want)
	rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	slices.SortFunc(got, natsort.Compare)
	require.Equal(t, want, got)
}
