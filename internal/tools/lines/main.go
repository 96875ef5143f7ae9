// Command lines counts the lines of the product's Go code. It does not count blank lines and lines that only contain
// comments. It excludes tests, helpers of tests, the development tools in internal/tools, and the module e2e. For
// internal/fleet, workflows and cmd it also counts the dependencies between the files of each package.
package main

import (
	"cmp"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// leftOut contains the names of folders that contain no product code.
var leftOut = []string{"e2e", "bin", "testdata", "testkit", "test", "tools", "backendtest", "workertest", "storetest"}

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := run(root); err != nil {
		fmt.Fprintln(os.Stderr, "count the lines of "+root+":", err)
		os.Exit(1)
	}
}

func run(root string) error {
	packages, err := countAll(root)
	if err != nil {
		return err
	}
	total := 0
	for _, p := range slices.SortedFunc(maps.Keys(packages), func(a, b string) int {
		return cmp.Or(cmp.Compare(packages[b], packages[a]), cmp.Compare(a, b))
	}) {
		fmt.Printf("%7d %s\n", packages[p], p)
		total += packages[p]
	}
	deciding := 0
	for _, p := range slices.Sorted(maps.Keys(packages)) {
		top, _, _ := strings.Cut(p, "/")
		decides := top == "workflows" && p != "workflows/client" || strings.HasPrefix(p+"/", "internal/fleet/")
		if decides {
			deciding += packages[p]
		}
		if !decides && top != "workflows" && top != "cmd" {
			continue
		}
		a, err := arrowsIn(filepath.Join(root, p))
		if err != nil {
			return err
		}
		fmt.Printf("ARROWS %s %s\n", p, a)
	}
	fmt.Printf("LINES deciding=%d in internal/fleet and workflows, without the client\n", deciding)
	fmt.Printf("LINES total=%d\n", total)
	return nil
}

// countAll counts the lines of each package below root. The keys of the result are the packages' folders.
func countAll(root string) (map[string]int, error) {
	packages := map[string]int{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || slices.Contains(leftOut, name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		packages[folder] += count(source)
		return err
	})
	return packages, err
}

// count returns the number of lines with code in a source file. Blank lines within a raw string do not count.
func count(source []byte) int {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(source))
	s.Init(file, source, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && text == "\n" { // the scanner has inserted it
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			if tok.IsOperator() || tok.IsKeyword() || strings.TrimSpace(line) != "" {
				lines[file.Line(pos)+i] = true
			}
		}
	}
}
