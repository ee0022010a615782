package cli

import (
	"embed"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/experiments/whatif"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// completeWords is the hidden command by which a shell script asks for completions.
const completeWords = "__complete"

// scripts are the completion scripts of the shells. They call the program for candidates.
//
//go:embed completion/*
var scripts embed.FS

type completionCmd struct {
	Shell string `arg:"" name:"SHELL" enum:"bash,zsh,fish" help:"bash, zsh or fish, which read it as in: source <(sparseserve completion bash)"`
}

// Run prints a shell script that asks this program for completions.
func (s *completionCmd) Run(a *App) error {
	script, err := scripts.ReadFile("completion/sparseserve." + s.Shell)
	if err != nil {
		return err
	}
	_, err = a.Stdout.Write(script)
	return err
}

// candidates lists completions of the last word: commands, flags or values; none for a file.
func candidates(app *kong.Application, words []string) (all []string) {
	node, args, begun := app.Node, 0, words[len(words)-1]
	var flag *kong.Flag // whose value comes next
	for _, word := range words[:len(words)-1] {
		i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word })
		switch {
		case flag != nil:
			flag = nil
		case strings.HasPrefix(word, "-"):
			for _, f := range slices.Concat(node.AllFlags(false)...) {
				if "--"+f.Name == word && !f.IsBool() {
					flag = f
				}
			}
		case i >= 0:
			node = node.Children[i]
		default:
			args++
		}
	}
	switch {
	case flag != nil:
		all = values(flag.Value, begun, words)
	case strings.HasPrefix(begun, "-"):
		for _, f := range slices.Concat(node.AllFlags(true)...) {
			all = append(all, "--"+f.Name)
		}
	case args < len(node.Positional):
		all = values(node.Positional[args], begun, words)
	}
	for _, n := range node.Children {
		if !n.Hidden && flag == nil {
			all = append(all, n.Name)
		}
	}
	return slices.DeleteFunc(all, func(w string) bool { return !strings.HasPrefix(w, begun) })
}

// values lists the values of a flag or an argument.
func values(v *kong.Value, begun string, words []string) []string {
	if v.Tag.Get("complete") == "names" { // of the kind before
		for _, k := range listKinds() {
			if k.names != nil && slices.Contains(words, k.name) {
				return k.names()
			}
		}
	}
	if names := namesOf[v.Tag.Get("complete")]; names != nil {
		return names(begun)
	}
	if v.Enum != "" {
		return v.EnumSlice()
	}
	return nil
}

// namesOf maps a field's complete tag to the candidates for a value.
var namesOf = map[string]func(begun string) []string{
	"models":      func(string) []string { return llm.Names() },
	"cards":       func(string) []string { return hw.CardNames() },
	"kinds":       named(listKinds, func(k *listKind) string { return k.name }),
	"figures":     func(string) []string { return papers.Names() },
	"claims":      func(string) []string { return papers.ClaimNames() },
	"settings":    settingWords,
	"knobs":       knobs,
	"experiments": func(string) []string { return experiments.Names() },
	"metrics":     named(whatif.Metrics, func(m *whatif.Metric) string { return m.Name }),
	"thresholds":  named(whatif.Thresholds, func(t *whatif.Threshold) string { return t.Name }),
}

// named returns what lists the names of things.
func named[T any](all func() []T, name func(*T) string) func(string) []string {
	return func(string) (names []string) {
		things := all()
		for i := range things {
			names = append(names, name(&things[i]))
		}
		return names
	}
}

func knobs(begun string) []string {
	own := named(whatif.Knobs, func(k *whatif.Knob) string { return k.Name + "=" })
	return append(own(begun), keys("=")...)
}

func keys(end string) (names []string) {
	for _, k := range configKeys("") {
		names = append(names, k.Key+end)
	}
	return names
}

// settingWords completes KEY=VALUE: first the keys, then the values of a key.
func settingWords(begun string) (words []string) {
	key, _, valued := strings.Cut(begun, "=")
	if !valued {
		return keys("=")
	}
	for _, k := range configKeys(key) {
		values := strings.Split(k.Values, ", ")
		if strings.HasPrefix(k.Type, "true or false") {
			values = []string{"true", "false"}
		}
		for _, v := range values {
			if k.Key == key && v != "" && !strings.ContainsAny(v, " <>[]") { // such as "a path", and ranges
				words = append(words, key+"="+v)
			}
		}
	}
	return words
}
