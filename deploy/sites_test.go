package deploy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// verbs are the methods of Kubernetes clients that need a right. wrappers are functions (ours and Liqo's) that
// receive a client and use it.
var (
	verbs    = []string{"Get", "List", "Watch", "Create", "Update", "Patch", "Delete", "DeleteAllOf"}
	wrappers = []string{"DeleteThis", "deleteAsRead", "MergePatch", "patchIfChanged", "GetClusterKeys",
		"MutateVirtualNode"}
)

// callSites returns each place in a package's code that uses a Kubernetes client, as "file function callee". The
// table in rights_test.go must have exactly these rows.
func callSites(t *testing.T, dir string) []string {
	t.Helper()
	var sites []string
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(function, func(node ast.Node) bool {
				if call, ok := node.(*ast.CallExpr); ok {
					if callee := clientCall(call); callee != "" {
						sites = append(sites, filepath.Base(path)+" "+function.Name.Name+" "+callee)
					}
				}
				return true
			})
		}
	}
	require.NotEmpty(t, sites)
	slices.Sort(sites)
	return slices.Compact(sites)
}

// clientCall returns the callee of a call that uses a client, or "" for any other call. A call uses a client in two
// cases: it calls a wrapper, or it calls a method with the name of a verb and has ctx as its first argument.
func clientCall(call *ast.CallExpr) string {
	switch callee := call.Fun.(type) {
	case *ast.Ident:
		if slices.Contains(wrappers, callee.Name) {
			return callee.Name
		}
	case *ast.SelectorExpr:
		switch {
		case slices.Contains(wrappers, callee.Sel.Name):
			return callee.Sel.Name
		case slices.Contains(verbs, callee.Sel.Name) && len(call.Args) > 0 && types.ExprString(call.Args[0]) == "ctx":
			return types.ExprString(callee)
		}
	}
	return ""
}
