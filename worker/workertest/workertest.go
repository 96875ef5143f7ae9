// Package workertest contains aliases of helpers in internal/testkit, for the tests of package worker.
package workertest

import (
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/devserver"
)

// Buffer aliases testkit.Buffer.
type Buffer = testkit.Buffer

// TemporalCLI returns the path of the temporal CLI, or an error if it is not installed. It ignores its argument.
func TemporalCLI(string) (string, error) { return devserver.CLI() }
