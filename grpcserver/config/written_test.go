package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A value that YAML would read as another value is refused. It is neither replaced nor accepted.
func TestAmbiguousValuesAreRefused(t *testing.T) {
	const head = "nodeGroups:\n- id: a\n"
	for name, tc := range map[string]struct{ yaml, want string }{
		"zero drain": {"  max: 4\n  shape: {cpu: 2, memory: 4Gi, pods: 110}\n  budgets: {drain: 0s}\n",
			"nodeGroups[0].budgets.drain: is 0s: give more than 0, such as 1s, or leave it out for the default"},
		"bare memory": {"  max: 4\n  shape: {cpu: 2, memory: 4, pods: 110}\n",
			"nodeGroups[0].shape.memory: is 4 bytes: give it a unit such as Mi or Gi"},
		"milli memory": {"  max: 4\n  shape: {cpu: 2, memory: 4m, pods: 110}\n",
			"nodeGroups[0].shape.memory: is 4m bytes: give it a unit such as Mi or Gi"},
		"too many": {"  max: 3000000000\n  shape: {cpu: 2, memory: 4Gi, pods: 110}\n",
			"nodeGroups[0].max: is 3000000000: give at most 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(head + tc.yaml))
			require.ErrorContains(t, err, tc.want)
		})
	}
}
