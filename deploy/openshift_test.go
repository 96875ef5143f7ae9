package deploy_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// With openshift: true, no pod sets a user or a group, because the SCC restricted-v2 would refuse the pod. The other
// settings of the pods' security contexts stay the same.
func TestPodsOnOpenShiftNameNoUser(t *testing.T) {
	for name, rendered := range map[string]func(*testing.T, ...string) ([]byte, error){
		"server and worker": func(t *testing.T, args ...string) ([]byte, error) {
			return template(t, append(args, "--values", valuesFile("plaintext"))...)
		},
		"agent": func(t *testing.T, args ...string) ([]byte, error) {
			return templateAgent(t, append(args, "--values", agentValues("full"))...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			usual, err := rendered(t, "--set", "openshift=false")
			require.NoError(t, err, "%s", usual)
			open, err := rendered(t, "--set", "openshift=true")
			require.NoError(t, err, "%s", open)
			for _, field := range []string{"runAsUser:", "runAsGroup:", "fsGroup:"} {
				require.Contains(t, string(usual), field)
				require.NotContains(t, string(open), field)
			}
			for _, field := range []string{"runAsNonRoot: true", "RuntimeDefault", "allowPrivilegeEscalation: false"} {
				require.Contains(t, string(open), field)
			}
		})
	}
}
