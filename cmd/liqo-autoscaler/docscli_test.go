package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/golden"
)

const cliIntro = `# Command line

Generated from the commands by ` + "`make update`" + `. Each command also prints this text with ` + "`--help`" + `.
`

// docs/reference/cli.md describes every command and flag of our programs.
func TestDocumentedCommandLine(t *testing.T) {
	var b strings.Builder
	b.WriteString(cliIntro)
	for _, name := range []string{"liqo-autoscaler", "liqo-autoscaler-agent", "externalgrpc-conformance"} {
		writeCommand(&b, programs[name]())
	}
	golden.Check(t, "../../docs/reference/cli.md", b.String())
}

// writeCommand writes a section for the command and one for each of its visible subcommands.
func writeCommand(b *strings.Builder, cmd *cobra.Command) {
	level := "##"
	if cmd.HasParent() {
		level = "###"
	}
	fmt.Fprintf(b, "\n%s %s\n\n%s\n", level, cmd.CommandPath(), asText(cmp.Or(cmd.Long, cmd.Short)))
	if cmd.Runnable() {
		fmt.Fprintf(b, "\n```text\n%s\n```\n", usage(cmd))
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n\n```text\n%s\n```\n", strings.Trim(cmd.Example, "\n"))
	}
	writeFlags(b, cmd)
	subcommands := slices.Clone(cmd.Commands())
	slices.SortFunc(subcommands, func(a, b *cobra.Command) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, sub := range subcommands {
		if !sub.Hidden {
			writeCommand(b, sub)
		}
	}
}

// writeFlags writes a table of the command's own flags, without the inherited flags.
func writeFlags(b *strings.Builder, cmd *cobra.Command) {
	var rows []string
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || f.Name == "version" || cmd.InheritedFlags().Lookup(f.Name) != nil {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		standard := ""
		if !slices.Contains([]string{"", "[]", "false", "0", "0s"}, f.DefValue) {
			standard = "`" + sorted(f) + "`"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", strings.TrimSpace(name+" "+kind), standard,
			inCell(usage)))
	})
	if len(rows) == 0 {
		return
	}
	b.WriteString("\n| flag | default | meaning |\n|---|---|---|\n")
	for _, row := range rows {
		b.WriteString(row)
	}
}

// sorted returns the default value of a flag as text. It sorts the entries of a map, because pflag prints them in
// random order.
func sorted(f *pflag.Flag) string {
	if f.Value.Type() != "stringToString" {
		return f.DefValue
	}
	entries := strings.Split(strings.Trim(f.DefValue, "[]"), ",")
	slices.Sort(entries)
	return "[" + strings.Join(entries, ",") + "]"
}

// inCell returns the text in a form that can be a cell of a Markdown table.
func inCell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(text)
}

// asText escapes the text of a command for Markdown, so that browsers do not read words in angle brackets as HTML.
func asText(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "<", "&lt;")
}

// usage returns the usage line of the command, including its arguments and its required flags.
func usage(cmd *cobra.Command) string {
	line := strings.TrimSuffix(cmd.UseLine(), " [flags]")
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, required := f.Annotations[cobra.BashCompOneRequiredFlag]; required {
			line += " --" + f.Name + " VALUE"
		}
	})
	return line
}
