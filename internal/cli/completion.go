package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/whatif"
	"github.com/sparseserve/sparseserve/hw"
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

// namesOf lists what a field's tag complete may name: what a value of it can begin by.
var namesOf = map[string]func(begun string) []string{
	"models":      func(string) []string { return hw.ModelNames() },
	"cards":       func(string) []string { return hw.CardNames() },
	"engines":     func(string) []string { return hw.EngineNames() },
	"prefills":    func(string) []string { return config.PrefillAttentions() },
	"settings":    settings,
	"keys":        func(string) []string { return keys("") },
	"knobs":       func(string) []string { return append(knobs("="), keys("=")...) },
	"experiments": builtIn,
	"metrics": func(string) (names []string) {
		for _, m := range whatif.Metrics() {
			names = append(names, m.Name)
		}
		return names
	},
	"thresholds": func(string) (names []string) {
		for _, t := range whatif.Thresholds() {
			names = append(names, t.Name)
		}
		return names
	},
}

func builtIn(string) (names []string) {
	for _, e := range experiments.BuiltIn() {
		names = append(names, e.Name)
	}
	return names
}

func knobs(end string) (names []string) {
	for _, k := range whatif.Knobs() {
		names = append(names, k.Name+end)
	}
	return names
}

func keys(end string) (names []string) {
	rows, err := readKeys()
	if err != nil {
		return nil
	}
	for _, row := range rows {
		names = append(names, row[0]+end)
	}
	return names
}

// settings completes KEY=VALUE: the keys, and once a key is there its values.
func settings(begun string) (words []string) {
	key, _, valued := strings.Cut(begun, "=")
	if !valued {
		return keys("=")
	}
	rows, err := readKeys()
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(rows, func(row []string) bool { return row[0] == key })
	if i < 0 {
		return nil
	}
	values := strings.Split(rows[i][3], ", ")
	if strings.HasPrefix(rows[i][1], "true or false") {
		values = []string{"true", "false"}
	}
	for _, v := range values {
		if v != "" && !strings.ContainsAny(v, " <>[]") { // such as "a path", and ranges
			words = append(words, key+"="+v)
		}
	}
	return words
}

// completion returns how the values of a field are completed; nil for files.
func (f *field) completion() cobra.CompletionFunc {
	switch names := namesOf[f.tag.Get("complete")]; {
	case names != nil:
		return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if f.has("arg") && len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			words := slices.DeleteFunc(names(begun), func(w string) bool {
				return !strings.HasPrefix(w, begun)
			})
			if slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(w, "=") }) {
				return words, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
			}
			return words, cobra.ShellCompDirectiveDefault // a file, too
		}
	case f.has("enum"):
		return cobra.FixedCompletions(f.list("enum"), cobra.ShellCompDirectiveNoFileComp)
	case f.Type() == "DIR":
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	}
	return nil
}

// completeValues has the values of flags completed.
func completeValues(c *cobra.Command) {
	c.Flags().VisitAll(func(flag *pflag.Flag) {
		f, ok := flag.Value.(*field)
		if !ok {
			return
		}
		if complete := f.completion(); complete != nil {
			if err := c.RegisterFlagCompletionFunc(flag.Name, complete); err != nil {
				panic(err) // a flag that is not the command's, or has one
			}
		}
	})
	for _, sub := range c.Commands() {
		completeValues(sub)
	}
}
