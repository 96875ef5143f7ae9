package e2e_test

import (
	"path/filepath"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab"
)

// oneSlicePerProvider tells whether the lab's Liqo is older than 1.2: there a virtual kubelet takes the pods of its siblings
// away (Liqo #3257), so offers have maxNodes 1 and parts that need two nodes on one provider are left out.
func oneSlicePerProvider(l *lab.Lab) bool {
	return strings.Contains(filepath.Base(l.Bin), "liqo-v1.0.") || strings.Contains(filepath.Base(l.Bin), "liqo-v1.1.")
}
