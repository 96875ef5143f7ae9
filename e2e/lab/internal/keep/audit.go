package keep

import (
	"fmt"
	"os"
	"path/filepath"
)

// audited is the audit policy of the API servers: they record each request of a ServiceAccount, without the request's
// content. Kubernetes and Liqo use no ServiceAccounts in the lab. Therefore the log contains only the requests of a
// suite's own accounts.
const audited = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
  {"level": "Metadata", "userGroups": ["system:serviceaccounts"]}, {"level": "None"}]}`

// audit writes the policy and returns the flags of the API server. The log has at most two files of 500 MiB.
func (c *cluster) audit() ([]string, error) {
	policy := filepath.Join(c.Root, c.name+"-audit-policy.json")
	if err := os.WriteFile(policy, []byte(audited), 0o600); err != nil {
		return nil, fmt.Errorf("write audit policy of %s: %w", c.name, err)
	}
	return flags("--audit-policy-file", policy, "--audit-log-path", filepath.Join(c.Root, c.name+"-audit.log"),
		"--audit-log-maxsize", "500", "--audit-log-maxbackup", "1"), nil
}
