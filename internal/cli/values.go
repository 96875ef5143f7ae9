package cli

import "github.com/spf13/cobra"

// Values makes the shell completion offer the given values for the command's flag.
func Values(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, // returns an error only for a flag that does not exist
		cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
