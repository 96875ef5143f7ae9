// Package workertest holds the last helpers for this folder's own tests that internal/testkit has not replaced.
package workertest

import (
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/devserver"
)

// Buffer is testkit.Buffer.
type Buffer = testkit.Buffer

// TemporalCLI finds the temporal CLI.
func TemporalCLI(string) (string, error) { return devserver.CLI() }
