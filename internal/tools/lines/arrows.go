package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// arrows contains, for each file of a package except tests, the files on which it depends. A file has an arrow to
// each other file that declares a function, method, type, variable or constant that the file uses. The use of a
// struct field does not count.
type arrows map[string]map[string]bool

// count returns the number of arrows. backwards is the number of arrows that run backwards in the best order of the
// files.
func (a arrows) count() (all, backwards int) {
	counted := map[string]bool{}
	for from, to := range a {
		all += len(to)
		var circle []string
		for file := range a {
			if !counted[file] && a.leads(from, file, map[string]bool{}) && a.leads(file, from, map[string]bool{}) {
				circle = append(circle, file)
				counted[file] = true
			}
		}
		backwards += a.backwards(circle)
	}
	return all, backwards
}

// leads reports whether the arrows lead from one file to another, directly or through other files. seen collects the
// visited files.
func (a arrows) leads(from, to string, seen map[string]bool) bool {
	for next := range a[from] {
		if next == to {
			return true
		}
		if !seen[next] {
			seen[next] = true
			if a.leads(next, to, seen) {
				return true
			}
		}
	}
	return false
}

// backwards returns the minimum number of backward arrows over all orders of the files. An arrow runs backwards if it
// leads to a later file. The function computes the minimum for each subset of the files from smaller subsets: it
// tries each file as the last one of the subset, and counts the arrows of that file to files outside the subset,
// because these files come later.
func (a arrows) backwards(files []string) int {
	least := make([]int, 1<<len(files))
	for set := 1; set < len(least); set++ {
		least[set] = math.MaxInt
		for last, file := range files {
			if set>>last&1 == 0 {
				continue
			}
			after := 0
			for n, other := range files {
				if set>>n&1 == 0 && a[file][other] {
					after++
				}
			}
			least[set] = min(least[set], least[set&^(1<<last)]+after)
		}
	}
	return least[len(least)-1]
}

func (a arrows) String() string {
	all, backwards := a.count()
	return fmt.Sprintf("files=%d arrows=%d a_file=%.2f backwards=%d", len(a), all, float64(all)/float64(len(a)), backwards)
}

// arrowsIn returns the arrows of the package in a folder. If the package does not compile, it returns an error.
func arrowsIn(folder string) (arrows, error) {
	p, err := build.ImportDir(folder, 0)
	if err != nil {
		return nil, err
	}
	compiled, err := dependencies(folder)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	set, found := token.NewFileSet(), arrows{}
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(set, filepath.Join(folder, name), nil, 0)
		if err != nil {
			return nil, err
		}
		files, found[name] = append(files, f), map[string]bool{}
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(compiled[path])
	})}
	pkg, err := config.Check(folder, set, files, &info)
	if err != nil {
		return nil, err
	}
	for name, named := range info.Uses {
		if v, ok := named.(*types.Var); named.Pkg() != pkg || ok && v.IsField() {
			continue
		}
		from, to := set.Position(name.Pos()).Filename, set.Position(named.Pos()).Filename
		if from != to {
			found[filepath.Base(from)][filepath.Base(to)] = true
		}
	}
	return found, nil
}

// dependencies returns the files with compiled export data, by import path. It returns the files of the package in
// the folder, and of all packages on which this package depends.
func dependencies(folder string) (map[string]string, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}")
	list.Dir = folder
	out, err := list.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return nil, fmt.Errorf("go list: %w: %s", err, failed.Stderr)
	}
	compiled := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		compiled[path] = file
	}
	return compiled, err
}
