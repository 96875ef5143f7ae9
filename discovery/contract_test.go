package discovery_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
)

// posting returns an offer in the form in which an agent writes it, with additional fields.
func posting(t *testing.T, more map[string]any) []byte {
	t.Helper()
	fields := map[string]any{
		"name": "milan", "credentials": map[string]any{"secretRef": map[string]any{"namespace": "a", "name": "milan"}},
		"lendable": map[string]any{"cpu": "4", "memory": "8Gi", "pods": "20"}, "ttlSeconds": 60,
	}
	for key, value := range more {
		fields[key] = value
	}
	text, err := json.Marshal(fields)
	require.NoError(t, err)
	return text
}

// Agents and consumers are upgraded at different times. Each side reads the documents of the other side, or reports
// which side to upgrade. TestWire covers the recorded versions: this build reads every version, and writes all of its
// fields.
func TestAgentsAndConsumersOfDifferentVersionsWork(t *testing.T) {
	future := map[string]any{"spot": true, "zones": []string{"a"}}
	for name, c := range map[string]struct {
		more    map[string]any
		server  string // the error of the discovery server
		whoever string // the error of a reader of the ConfigMap
	}{
		"of an agent without a version": {more: nil},
		"of this version":               {more: map[string]any{"contract": discovery.ContractVersion}},
		"of a later version":            {more: map[string]any{"contract": discovery.ContractVersion + 1, "future": future}},
		"with a mistake of its writer": {more: map[string]any{"future": future},
			server: "future: unknown field: remove it"},
		"of a later version, with an old mistake": {
			more:   map[string]any{"contract": discovery.ContractVersion + 1, "future": future, "maxNodes": -1},
			server: "maxNodes: ", whoever: "maxNodes: "},
		"that only a later version understands": {
			more:    map[string]any{"contract": 9, "requiresContract": 9, "future": future},
			server:  "requiresContract: is 9, but this liqo-autoscaler knows contract 1: upgrade it",
			whoever: "requiresContract: is 9, but this liqo-autoscaler knows contract 1: upgrade it"},
		"that only a later version can parse": {
			more:    map[string]any{"contract": 9, "requiresContract": 9, "lendable": []string{"4 CPUs"}},
			server:  "requiresContract: is 9, but this liqo-autoscaler knows contract 1: upgrade it",
			whoever: "requiresContract: is 9, but this liqo-autoscaler knows contract 1: upgrade it"},
		"of no version": {more: map[string]any{"contract": -1}, server: "contract: is -1", whoever: "contract: is -1"},
	} {
		t.Run(name, func(t *testing.T) {
			says := func(want string, err error) {
				t.Helper()
				if want == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, want)
				}
			}
			posted, err := api.Decode(posting(t, c.more))
			says(c.server, err)
			require.LessOrEqual(t, posted.Version, discovery.ContractVersion, "what is stored has no later field")
			_, err = discovery.ParsePublished(string(posting(t, c.more)))
			says(c.whoever, err)
		})
	}
}
