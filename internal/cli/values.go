package cli

import "github.com/spf13/cobra"

// Values completes the flag of the command with the values.
func Values(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, // fails only for a flag that does not exist
		cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
