package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type completionCmd struct {
	Shell string `arg:"" name:"SHELL" enum:"bash,zsh,fish,powershell" help:"bash, zsh, fish or powershell, which read it as in: source <(sparseserve completion bash)"`
}

// Run prints a script that asks this program for what can follow on a command line.
func (s *completionCmd) Run(a *App) error {
	root := a.command("sparseserve", "", &commands{})
	switch s.Shell {
	case "bash":
		return root.GenBashCompletionV2(a.Stdout, true)
	case "zsh":
		return root.GenZshCompletion(a.Stdout)
	case "fish":
		return root.GenFishCompletion(a.Stdout, true)
	}
	return root.GenPowerShellCompletionWithDesc(a.Stdout)
}

// completeValues has the values of flags completed: those of an enum, and folders.
func completeValues(c *cobra.Command) {
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		f, ok := flag.Value.(*field)
		var complete cobra.CompletionFunc
		switch {
		case ok && f.has("enum"):
			complete = cobra.FixedCompletions(f.list("enum"), cobra.ShellCompDirectiveNoFileComp)
		case ok && f.Type() == "DIR":
			complete = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
		default:
			return
		}
		if err := c.RegisterFlagCompletionFunc(flag.Name, complete); err != nil {
			panic(err) // a flag that is not the command's, or has one
		}
	})
	for _, sub := range c.Commands() {
		completeValues(sub)
	}
}
