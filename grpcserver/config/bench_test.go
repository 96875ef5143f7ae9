package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// manyGroups returns a config whose defaults contain one mistake, which all groups inherit.
func manyGroups(n int) []byte {
	var raw strings.Builder
	raw.WriteString("defaults: {max: 0, min: 0, shape: {cpu: 1, memory: 1Gi, pods: 1}, labels: {a: b}, budgets: {peer: " +
		"1s}}\nnodeGroups:\n")
	for i := range n {
		fmt.Fprintf(&raw, "- {id: a%d}\n", i)
	}
	return []byte(raw.String())
}

const oneMistake = "line 1: defaults.max: is 0: give at least 1"

// A mistake in the defaults is reported once, at its place in the defaults, and not for each group.
func TestMistakeInTheDefaultsIsReportedOnce(t *testing.T) {
	_, err := Parse(manyGroups(200))
	require.EqualError(t, err, oneMistake)
}

// Each Refresh of CA waits until a changed file is read, so the time per group must not grow with the number of
// groups. The benchmark parses configs of several sizes. It also measures yaml.Unmarshal on the same text, for
// comparison. It prints BENCH <name> <value> <unit> <ratio> <against>.
func BenchmarkParseManyGroups(b *testing.B) {
	for _, n := range []int{200, 2_000, 20_000} {
		raw := manyGroups(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var ours, bare time.Duration
			for b.Loop() {
				began := time.Now()
				_, err := Parse(raw)
				ours += time.Since(began)
				require.EqualError(b, err, oneMistake)
				began = time.Now()
				require.NoError(b, yaml.Unmarshal(raw, new(map[string]any)))
				bare += time.Since(began)
			}
			each := float64(ours.Nanoseconds()) / 1e3 / float64(b.N) / float64(n)
			fmt.Printf("BENCH config-parse-per-group-%d %.1f us %.2f yaml-decode\n", n, each, float64(ours)/float64(bare))
		})
	}
}
