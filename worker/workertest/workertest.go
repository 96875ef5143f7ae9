// Package workertest is what is left of the helpers that internal/testkit has replaced, for this folder's own tests.
package workertest

import (
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/devserver"
)

// Buffer is testkit.Buffer.
type Buffer = testkit.Buffer

// TemporalCLI finds the temporal CLI.
func TemporalCLI(string) (string, error) { return devserver.CLI() }
