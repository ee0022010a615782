package run

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// Question is the question that the results in a folder answer.
type Question struct {
	Command string
	Name    string   // of the configuration
	Asked   []string // settings and other flags
	Text    string   // of the configuration and of its base
	Config  []byte   // the resolved configuration; nil where axes change it
	Axes    []string // keys that differ between runs
	// Runs are the runs known in advance; nil if the answer chooses runs as it goes.
	Runs   []config.Point
	Inputs []string // files that the command reads
}

// Ask returns the question of a command that chooses its runs as it goes.
func Ask(command, name, path string, asked, inputs []string) (*Question, error) {
	texts, err := config.Texts(path)
	return &Question{Command: command, Name: name, Asked: asked, Text: strings.Join(texts, "\n"),
		Inputs: inputs}, err
}

// AskSweep returns the question of all runs of a sweep. A sweep without axes has one configuration
// for all runs.
func AskSweep(ctx context.Context, s *config.Sweep) (*Question, error) {
	runs, err := s.Points(ctx)
	q := &Question{Command: "simulate", Name: s.Name, Axes: append([]string{}, s.Axes...), Runs: runs,
		Inputs: s.Paths()}
	if err == nil && len(s.Axes) == 0 {
		q.Config, err = config.TOML(s.Variants[0])
	}
	return q, err
}

// Settings returns the axis settings of each known run, by key; nil without axes.
func (q *Question) Settings() []map[string]any {
	if len(q.Axes) == 0 {
		return nil
	}
	all := make([]map[string]any, len(q.Runs))
	for i := range q.Runs {
		all[i] = config.SettingsMap(q.Runs[i].Settings)
	}
	return all
}

// toml returns the text of the folder's question file.
func (q *Question) toml(version string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "command = %q\nversion = %q # of the model\nname = %q\n", q.Command, version,
		q.Name)
	for _, list := range []struct {
		key    string
		values []string
	}{{"asked", q.Asked}, {"axes", q.Axes}} {
		if len(list.values) > 0 {
			fmt.Fprintf(&b, "%s = [%s]\n", list.key, quoted(list.values))
		}
	}
	if q.Text != "" {
		fmt.Fprintf(&b, "configuration = %s\n", multiline(q.Text))
	}
	return []byte(b.String())
}

func quoted(values []string) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = strconv.Quote(v)
	}
	return strings.Join(words, ", ")
}

// multiline formats a TOML string as a multi-line string if possible.
func multiline(text string) string {
	if strings.Contains(text, "'''") {
		return strconv.Quote(text)
	}
	return "'''\n" + text + "'''"
}
