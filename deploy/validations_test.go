package deploy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/provider"
)

// Each validation of the policies has a message of its own, of which an attempt in these tests quotes a part: an
// attempt that only this validation denies fails without it.
func TestEachValidationIsTried(t *testing.T) {
	quoted := literals(t)
	agent, err := templateAgent(t, "--values", agentValues("full"))
	require.NoError(t, err, "%s", agent)
	for what, objects := range map[string][]object{
		"chart": render(t, "plaintext"), "microvm": render(t, "plaintext", "--set",
			"microvm.enabled=true,microvm.namespace=machines"),
		"agent":           decode(t, agent),
		"provider-access": decode(t, []byte(provider.Manifest("rome", "liqo", provider.PodPolicies))),
	} {
		for _, policy := range all[admissionv1.ValidatingAdmissionPolicy](objects) {
			messages := map[string]bool{}
			for _, v := range policy.Spec.Validations {
				require.NotEmpty(t, v.Message, "%s: policy %s: %s", what, policy.Name, v.Expression)
				require.False(t, messages[v.Message], "%s: policy %s says twice: %s", what, policy.Name, v.Message)
				messages[v.Message] = true
				tried := slices.ContainsFunc(quoted, func(part string) bool { return strings.Contains(v.Message, part) })
				require.True(t, tried, "%s: policy %s: no attempt is denied with: %s", what, policy.Name, v.Message)
			}
		}
	}
}

// literals returns the texts in this package's tests that are long enough to be a part of a message.
func literals(t *testing.T) (texts []string) {
	t.Helper()
	files, err := filepath.Glob("*policy*_test.go")
	require.NoError(t, err)
	for _, more := range []string{"provider*_test.go", "shadowpods_test.go", "namespacemaps_test.go",
		"virtualnodes_test.go", "workerliqo_test.go", "agentclass_test.go", "microvm_test.go"} {
		found, err := filepath.Glob(more)
		require.NoError(t, err)
		files = append(files, found...)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if text, err := strconv.Unquote(l.Value); err == nil && len(text) >= 12 {
					texts = append(texts, text)
				}
			}
			return true
		})
	}
	return texts
}
