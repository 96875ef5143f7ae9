package deploy_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHelm4RendersTheSameObjects checks that Helm 4 renders the same objects of both charts as Helm 3. Helm 4's
// linter reports no finding. Helm 4 also refuses the values that the schema or the chart refuse, although its
// messages about a schema are different.
func TestHelm4RendersTheSameObjects(t *testing.T) {
	next := tool(t, "HELM4")
	type rendering func() []object
	renderings := map[string]rendering{
		"bundled": func() []object { return render(t, "plaintext", bundled("temporal.bundled.ui.enabled=true")...) },
	}
	for _, set := range valueSets {
		renderings[set] = func() []object { return render(t, set, "--set", "temporal.setup.enabled=true") }
	}
	for set := range agentSets {
		renderings["agent "+set] = func() []object { return renderAgent(t, set) }
	}
	before := map[string][]object{}
	for name, rendered := range renderings {
		before[name] = rendered()
		require.NotEmpty(t, before[name], name)
	}
	t.Setenv("HELM", next)
	for name, rendered := range renderings {
		require.ElementsMatch(t, before[name], rendered(), name)
	}
	for _, set := range valueSets {
		out, err := helm(t, "lint", chart, "--strict", "--quiet", "--kube-version", kube, "--values", valuesFile(set))
		require.NoError(t, err, "%s", out)
	}
	for _, change := range []string{"limits.pods=7", "temporal.address=temporal", "tls.plaintext=false",
		"nodeGroups=null"} {
		_, err := template(t, "--values", valuesFile("plaintext"), "--set", change)
		require.Error(t, err, change)
	}
}
