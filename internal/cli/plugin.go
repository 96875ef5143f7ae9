package cli

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// plugin is the file name of a kubectl plugin: the command `kubectl some-name` runs kubectl-some_name.
var plugin = regexp.MustCompile(`^kubectl-([a-z0-9_]+)$`)

// AsPlugin makes usage lines and examples begin with `kubectl` when the program was started under the file name of a
// kubectl plugin. Otherwise it changes nothing.
func AsPlugin(root *cobra.Command, program string) {
	name := plugin.FindStringSubmatch(filepath.Base(program))
	if name == nil {
		return
	}
	display := "kubectl " + strings.ReplaceAll(name[1], "_", "-")
	if root.Annotations == nil {
		root.Annotations = map[string]string{}
	}
	root.Annotations[cobra.CommandDisplayNameAnnotation] = display
	renameExamples(root, regexp.MustCompile(`(?m)^( *)`+regexp.QuoteMeta(root.Name())+` `), "${1}"+display+" ")
}

func renameExamples(cmd *cobra.Command, name *regexp.Regexp, display string) {
	cmd.Example = name.ReplaceAllString(cmd.Example, display)
	for _, below := range cmd.Commands() {
		renameExamples(below, name, display)
	}
}
