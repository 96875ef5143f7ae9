package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/setup"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/golden"
)

// CA's settings are defined in one place. The file that users copy from the repository, and the output of our chart,
// are both generated from this place.
func TestSettingsOfCAHaveOneSource(t *testing.T) {
	values, _, err := command(t.Context(), "config", "cloud-config", "-o", "helm-values")
	require.NoError(t, err)
	golden.Check(t, "../../deploy/ca/values.yaml", values)

	args := ""
	for _, f := range setup.CAFlags(setup.MinProvision) {
		args += "  " + f.Name + ": " + f.YAML() + "\n"
	}
	golden.Check(t, "../../deploy/helm/liqo-autoscaler/files/ca-extra-args.yaml", args)
	golden.Check(t, "../../deploy/helm/liqo-autoscaler/files/ca-pod.yaml", setup.CAPod)
}
