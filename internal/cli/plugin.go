package cli

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// plugin matches the file name of a kubectl plugin. For example, the command `kubectl some-name` runs the file
// kubectl-some_name.
var plugin = regexp.MustCompile(`^kubectl-([a-z0-9_]+)$`)

// AsPlugin finds out from the program's file name whether the program is a kubectl plugin. If so, it changes the help
// of the commands: usage lines and examples then begin with `kubectl`.
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
