package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// site is one possible change of one source file.
type site struct {
	file       string
	line       int
	from, to   int // the replaced bytes of the file
	with, what string
}

func (s site) String() string { return fmt.Sprintf("%s:%d: %s", s.file, s.line, s.what) }

// swaps contains pairs of operators. mutate replaces each operator of a pair by the other one.
var swaps = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
}

// enums contains, for each constant, the next constant of its type in its group. The keys are the name of the package
// and the name of the constant. For the last constant of a group, the next one is the first.
type enums map[string]map[string]string

// add adds the groups of constants that the file declares.
func (e enums) add(f *ast.File) {
	for _, d := range f.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		byType, last := map[string][]string{}, ""
		for _, s := range group.Specs {
			s := s.(*ast.ValueSpec)
			if id, ok := s.Type.(*ast.Ident); ok {
				last = id.Name
			} else if len(s.Values) > 0 {
				last = ""
			}
			if last != "" {
				byType[last] = append(byType[last], s.Names[0].Name)
			}
		}
		if e[f.Name.Name] == nil {
			e[f.Name.Name] = map[string]string{}
		}
		for _, names := range byType {
			for i, name := range names {
				if next := names[(i+1)%len(names)]; next != name {
					e[f.Name.Name][name] = next
				}
			}
		}
	}
}

// finder collects the sites of one file.
type finder struct {
	path   string
	fset   *token.FileSet
	source []byte
	enums  enums
	pkg    string
	sites  []site
}

// sitesOf returns all possible changes of the source, in the order of the text.
func sitesOf(path string, source []byte, e enums) ([]site, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	find := &finder{path: path, fset: fset, source: source, enums: e, pkg: f.Name.Name}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body != nil {
				find.walk(d.Body, d.Type)
			}
		case *ast.GenDecl: // tables of constants and variables
			if d.Tok == token.VAR || d.Tok == token.CONST {
				for _, s := range d.Specs {
					for _, v := range s.(*ast.ValueSpec).Values {
						find.walk(v, nil)
					}
				}
			}
		}
	}
	return find.sites, nil
}

// walk collects the sites in a syntax tree. within is the type of the function that contains the return statements of
// the tree.
func (f *finder) walk(root ast.Node, within *ast.FuncType) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			f.walk(n.Body, n.Type)
			return false
		case *ast.ReturnStmt:
			f.swallow(n, within)
		case *ast.SelectorExpr: // the name of a field is not a constant
			if id, ok := n.X.(*ast.Ident); ok {
				f.swapName(n.Sel, f.enums[id.Name][n.Sel.Name])
			}
			f.walk(n.X, within)
			return false
		case *ast.KeyValueExpr:
			if id, ok := n.Key.(*ast.Ident); ok && f.enums[f.pkg][id.Name] == "" {
				f.walk(n.Value, within)
				return false
			}
		default:
			f.statement(n)
			f.expression(n)
		}
		return true
	})
}

func (f *finder) statement(n ast.Node) {
	switch n := n.(type) {
	case *ast.IfStmt:
		f.negate(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			f.negate(n.Cond)
		}
	case *ast.BlockStmt:
		f.remove(n.List)
	case *ast.CaseClause:
		f.remove(n.Body)
	}
}

func (f *finder) expression(n ast.Node) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if other, ok := swaps[n.Op]; ok {
			f.put(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), other.String())
		}
	case *ast.BasicLit:
		if i, err := strconv.ParseInt(n.Value, 0, 64); n.Kind == token.INT && err == nil {
			f.put(n.Pos(), n.End(), strconv.FormatInt(i+1, 10))
		}
	case *ast.Ident:
		f.swapName(n, map[string]string{"true": "false", "false": "true"}[n.Name])
		f.swapName(n, f.enums[f.pkg][n.Name])
	}
}

func (f *finder) negate(cond ast.Expr) {
	f.put(cond.Pos(), cond.End(), "!("+f.text(cond.Pos(), cond.End())+")")
}

func (f *finder) swapName(n *ast.Ident, other string) {
	if other != "" {
		f.put(n.Pos(), n.End(), other)
	}
}

// swallow adds a site in which nil replaces a returned error.
func (f *finder) swallow(n *ast.ReturnStmt, within *ast.FuncType) {
	if within == nil || within.Results == nil || len(n.Results) != within.Results.NumFields() {
		return
	}
	kind := within.Results.List[len(within.Results.List)-1].Type
	last := n.Results[len(n.Results)-1]
	if id, ok := kind.(*ast.Ident); ok && id.Name == "error" && f.text(last.Pos(), last.End()) != "nil" {
		f.put(last.Pos(), last.End(), "nil")
	}
}

// remove adds a site for each statement of the list that can be removed alone. It does not remove declarations,
// returns and log lines.
func (f *finder) remove(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok && isLog(f.text(call.Fun.Pos(), call.Fun.End())) {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || f.text(s.Lhs[0].Pos(), s.Lhs[0].End()) == "_" {
				continue
			}
		case *ast.IncDecStmt, *ast.BranchStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt:
		default:
			continue
		}
		f.put(s.Pos(), s.End(), "")
	}
}

// isLog reports whether a called function writes a log line. It decides by the function's name, such as log.Info or
// GetLogger(ctx).Warn.
func isLog(callee string) bool {
	callee = strings.ToLower(callee)
	return strings.Contains(callee, "log.") || strings.Contains(callee, "logger.") || strings.Contains(callee, "logger(")
}

func (f *finder) text(from, to token.Pos) string {
	return string(f.source[f.fset.Position(from).Offset:f.fset.Position(to).Offset])
}

func (f *finder) put(from, to token.Pos, with string) {
	at, old := f.fset.Position(from), f.text(from, to)
	what := "`" + short(old) + "` becomes `" + short(with) + "`"
	if with == "" {
		what = "`" + short(old) + "` removed"
	}
	f.sites = append(f.sites, site{file: f.path, line: at.Line, from: at.Offset, to: f.fset.Position(to).Offset,
		with: with, what: what})
}

// short returns a text as one line, without the middle of a long text.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 60 {
		return string(r[:40]) + "…" + string(r[len(r)-19:])
	}
	return text
}

// readable reports whether a file is Go source that mutate may change.
func readable(path string) bool {
	name := filepath.Base(path)
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && name != "doc.go"
}
