package fleet_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Each code has its own row. A failure with a code that has no row would be handled and counted as CodeInternal.
func TestEveryCodeHasOneRow(t *testing.T) {
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

// The test lists the fields of each code's row, which decide how a failure is handled. A change of a row must change
// this list too.
func TestEachFailureCodeHasItsJudgement(t *testing.T) {
	const full, other = fleet.OutOfResources, fleet.OtherError
	for code, want := range map[fleet.Code]fleet.CodeRow{
		fleet.CodeNoOffer:     {Class: full, Rests: true},
		fleet.CodeNoCapacity:  {Class: full, Rests: true, Final: true, Again: true},
		fleet.CodeRefused:     {Class: full, Rests: true, Final: true, Blames: true},
		fleet.CodeUnreachable: {Class: other, Rests: true, Blames: true},
		fleet.CodeTimeout:     {Class: other, Rests: true, Blames: true, OfStage: true},
		fleet.CodeCancelled:   {Class: other, Rests: true},
		fleet.CodeSpending:    {Class: full, Rests: true},
		fleet.CodePaused:      {Class: other, Rests: true},
		fleet.CodeNoRoom:      {Class: other, OfStage: true},
		fleet.CodeLost:        {Class: other, Rests: true},
		fleet.CodeInternal:    {Class: other, Rests: true},
	} {
		got := code.Row()
		want.Code, want.Means, want.Remedy, want.Page = code, got.Means, got.Remedy, got.Page
		require.Equal(t, want, got)
	}
	require.Len(t, fleet.CodeTable, 11, "a code has no judgement here")
}

func TestUnknownFailureCodeIsJudgedAsInternal(t *testing.T) {
	for _, code := range []fleet.Code{"", "Newer"} {
		require.Equal(t, fleet.CodeInternal.Row(), code.Row())
	}
}

// Every code has one sentence that explains the failure, and one sentence about the remedy.
func TestEveryCodeIsExplained(t *testing.T) {
	for _, row := range fleet.CodeTable {
		for _, text := range []string{row.Means, row.Remedy} {
			require.Regexp(t, `^[A-Z][^.|]*\.$`, text, row.Code)
		}
	}
}

func TestDocumentedCodesAreTheTable(t *testing.T) {
	const page = "../../docs/failure-codes.md"
	got := fleet.CodesPage()
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(got), 0o644))
	}
	want, err := os.ReadFile(page)
	require.NoError(t, err, "run make update")
	require.Equal(t, string(want), got, "run make update")
	for _, code := range fleet.Codes {
		require.Contains(t, string(want), "| `"+string(code)+"` |")
	}
}

// A refusal is recognized by its kind, however often its error is wrapped.
func TestWrappedRefusalIsRecognized(t *testing.T) {
	err := fmt.Errorf("call: %w", fleet.Refuse(fleet.RefusedMax, "full"))
	require.True(t, fleet.IsRefused(err, fleet.RefusedMax))
	require.False(t, fleet.IsRefused(err, fleet.RefusedInvalid))
	require.False(t, fleet.IsRefused(fleet.ErrUnavailable, fleet.RefusedMax))
	require.False(t, fleet.IsRefused(nil, ""))
}
