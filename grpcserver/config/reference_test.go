package config

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/examples"
)

func TestDocumentedConfigurationIsTheSchema(t *testing.T) {
	const page = "../../docs/configuration.md"
	got := "# Configuration of node groups\n\nGenerated from the types by `make update`.\n\n" + Reference() +
		"\nUnknown fields are refused. `liqo-autoscaler config validate FILE` says everything that is wrong at once,\n" +
		"`config view` shows the file with its defaults applied, `config schema` prints the JSON Schema.\n\n" +
		"The groups of `make run`:\n\n```yaml\n" + string(examples.NodeGroups) + "```\n"
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(got), 0o644))
	}
	want, err := os.ReadFile(page)
	require.NoError(t, err, "run make update")
	require.Equal(t, string(want), got, "run make update")
}
