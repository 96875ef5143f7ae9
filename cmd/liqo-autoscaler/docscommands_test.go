package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// misuse returns the error with which a program would refuse a command line. It does not run the command. The first
// word names the program. A line without arguments and flags only names a command: misuse then checks that the
// command exists, and nothing else. If the last flag of a line has no value, the line only names this flag.
func misuse(words []string) error {
	cmd, rest, err := programs[words[0]]().Find(valued(words[1:]))
	if last := len(rest) - 1; err == nil && last >= 0 && takesValue(cmd, rest[last]) {
		rest = rest[:last]
	}
	if err != nil || len(rest) == 0 {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return err
	}
	if cmd.PreRunE != nil {
		if err := cmd.PreRunE(cmd, cmd.Flags().Args()); err != nil {
			return err
		}
	}
	if err := cmd.ValidateRequiredFlags(); err != nil {
		return err
	}
	return cmd.ValidateFlagGroups()
}

var capitals = regexp.MustCompile(`^[A-Z][A-Z/_-]*$`)

// valued replaces each placeholder, such as ID or ADDRESS, by a value. If there are several alternatives, it takes
// the first one.
func valued(words []string) (with []string) {
	for _, word := range words {
		word, _, _ = strings.Cut(word, "|")
		switch {
		case word == "ADDRESS":
			word = "127.0.0.1:8086"
		case capitals.MatchString(word):
			word = strings.ToLower(word)
		}
		with = append(with, word)
	}
	return with
}

// printed matches command lines of liqo-autoscaler in the texts that the program prints. If the match is an example
// or in quotes, the text is a whole command line. Otherwise it is part of a sentence.
var printed = regexp.MustCompile("(  |[\"`])?\\bliqo-autoscaler ([a-z][^\n|<>`\"]*)")

// The program accepts each command line that its own texts contain as a remedy or an example.
func TestPrintedCommandsAreAccepted(t *testing.T) {
	found := 0
	for path, texts := range printedTexts(t) {
		for _, text := range texts {
			for _, m := range printed.FindAllStringSubmatch(text, -1) {
				words := commandLine(m[2], m[1] != "")
				if len(words) == 0 {
					continue // a part of a sentence
				}
				found++
				assert.NoError(t, misuse(append([]string{"liqo-autoscaler"}, words...)), "%s: liqo-autoscaler %s", path, m[2])
			}
		}
	}
	require.Greater(t, found, 40)
}

// printedTexts returns the string constants of the program, by the paths of its files. In a concatenation, an x
// replaces each part that is not a constant.
func printedTexts(t *testing.T) map[string][]string {
	t.Helper()
	texts := map[string][]string{}
	eachSource(t, func(path string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, constant := joined(e)
			if constant {
				texts[path] = append(texts[path], text)
			}
			return !constant
		})
	})
	require.NotEmpty(t, texts)
	return texts
}

// eachSource parses the Go files of the program. It omits tests and the module e2e.
func eachSource(t *testing.T, do func(path string, file *ast.File)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && (name == "e2e" || len(name) > 2 && strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			do(strings.TrimPrefix(path, "../../"), file)
		}
		return err
	}))
}

// joined returns the text of a string constant, or of a concatenation in which at least one part is a constant.
func joined(e ast.Expr) (text string, constant bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			left, isLeft := joined(e.X)
			right, isRight := joined(e.Y)
			return left + right, isLeft || isRight
		}
	}
	return "x", false
}

var (
	formatted   = regexp.MustCompile(`%[a-z]`)
	placeholder = regexp.MustCompile(`^(x|[A-Z][A-Z/_-]*|\S*[/.:\d]\S*)$`)
)

// commandLine returns the command line at the start of a text, or nil if the text does not start with a command. If
// whole is true, the whole text is the command line. Otherwise the text is part of a sentence: commandLine then takes
// the command, its flags with their values, and only those further words that cannot belong to the sentence.
func commandLine(text string, whole bool) (words []string) {
	all := strings.Fields(formatted.ReplaceAllString(text, "x"))
	for i, word := range all {
		if all[i] = strings.TrimRight(word, `,;:.)("'`); all[i] != word {
			all = all[:i+1]
			break
		}
	}
	cmd, rest, err := newRoot().Find(all)
	switch {
	case err != nil || cmd == cmd.Root():
		return nil
	case cmd.HasSubCommands() && len(rest) > 0 && rest[0] == "x": // x means any subcommand
		rest = nil
	}
	for i := 0; i < len(rest); i++ {
		switch word := rest[i]; {
		case strings.HasPrefix(word, "-") && takesValue(cmd, word) && i+1 < len(rest):
			i++
			words = append(words, word, rest[i])
		case whole, strings.HasPrefix(word, "-"), placeholder.MatchString(word),
			slices.Contains(strings.Fields(cmd.Use)[1:], word):
			words = append(words, word)
		default:
			i = len(rest)
		}
	}
	return append(strings.Fields(cmd.CommandPath())[1:], words...)
}

// takesValue reports whether word is a flag whose value is the next word.
func takesValue(cmd *cobra.Command, word string) bool {
	flags := cmd.Flags()
	flags.AddFlagSet(cmd.InheritedFlags())
	if name, long := strings.CutPrefix(word, "--"); long {
		flag := flags.Lookup(name)
		return flag != nil && flag.NoOptDefVal == ""
	}
	if len(word) != 2 || word[0] != '-' {
		return false
	}
	flag := flags.ShorthandLookup(word[1:])
	return flag != nil && flag.NoOptDefVal == ""
}

// changing lists the commands that change the state and print the result.
var changing = []string{"temporal setup", "pause", "resume", "cordon", "uncordon",
	"offers add", "offers put", "offers delete", "offers repin", "provider-access renew", "setup", "demo"}

// If a sentence in a document explains how to read a state, the sentence names no command that changes this state.
func TestDocumentedReadsChangeNothing(t *testing.T) {
	for _, name := range changing {
		cmd, rest, err := newRoot().Find(strings.Fields(name))
		require.NoError(t, err)
		require.Empty(t, rest)
		require.Equal(t, "liqo-autoscaler "+name, cmd.CommandPath())
	}
	reads := regexp.MustCompile(`\b(?:` + strings.Join(changing, "|") + ")[^.,;:`]*`? (?:shows|lists|reports|names) ")
	for _, path := range append(documents(t), chartTexts...) {
		text := strings.Join(strings.Fields(document(t, path)), " ")
		assert.Empty(t, reads.FindAllString(text, -1), path)
	}
}

// chartTexts lists the files of the charts that people read, except the READMEs.
var chartTexts = []string{"deploy/helm/liqo-autoscaler/values.yaml", "deploy/helm/liqo-autoscaler/templates/NOTES.txt",
	"deploy/helm/liqo-autoscaler-agent/values.yaml"}
