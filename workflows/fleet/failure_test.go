package fleet_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// A code that is missing from Codes would be counted as another one.
func TestCodesListsEveryConstant(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "failure.go", nil, 0)
	require.NoError(t, err)
	var declared []fleet.Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Code" {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			declared = append(declared, fleet.Code(value))
		}
		return true
	})
	require.NotEmpty(t, declared)
	require.Equal(t, declared, fleet.Codes)
}

// What CA files under its error class OutOfResources: another group may have what this one lacks.
func TestOutOfResources(t *testing.T) {
	for _, code := range fleet.Codes {
		want := code == fleet.CodeNoOffer || code == fleet.CodeNoCapacity || code == fleet.CodeRefused ||
			code == fleet.CodeSpending
		require.Equal(t, want, code.OutOfResources(), code)
	}
}

// A refusal is known by its kind, however it is wrapped.
func TestIsRefused(t *testing.T) {
	err := fmt.Errorf("call: %w", fleet.Refuse(fleet.RefusedMax, "full"))
	require.True(t, fleet.IsRefused(err, fleet.RefusedMax))
	require.False(t, fleet.IsRefused(err, fleet.RefusedInvalid))
	require.False(t, fleet.IsRefused(fleet.ErrUnavailable, fleet.RefusedMax))
	require.False(t, fleet.IsRefused(nil, ""))
}
