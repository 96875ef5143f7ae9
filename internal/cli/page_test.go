package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
)

// The URLs of documents that a program prints lead to the documents of its own release.
func TestPageOfTheRelease(t *testing.T) {
	before := cli.Version
	t.Cleanup(func() { cli.Version = before })
	for version, ref := range map[string]string{"0.1.0": "v0.1.0", "1.2.3-rc.1": "v1.2.3-rc.1", cli.Unstamped: "main",
		"": "main", "0.1": "main", "0.1.0/../..": "main"} {
		cli.Version = version
		require.Equal(t, "https://github.com/liqo-autoscaler/liqo-autoscaler/blob/"+ref+"/docs/doctor.md#no-offers",
			cli.Page("docs/doctor.md#no-offers"), version)
	}
}
