package run

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// Question is what the results in a folder answer.
type Question struct {
	Command string
	Name    string   // of the configuration
	Asked   []string // settings and other flags
	Text    string   // of the configuration and those that it starts from
	Config  []byte   // the resolved configuration; nil where axes change it
	Axes    []string // keys that differ between runs
	// Runs are those that are known before any is made; nil for an answer that chooses runs on its
	// way.
	Runs   []config.SweepPoint
	Inputs []string // files that the command reads
}

// Ask is the question of a command that looks for its runs on the way.
func Ask(command, name, path string, asked, inputs []string) (*Question, error) {
	texts, err := config.Texts(path)
	return &Question{Command: command, Name: name, Asked: asked, Text: strings.Join(texts, "\n"),
		Inputs: inputs}, err
}

// AskSweep is the question of all runs of a sweep. One without axes has a configuration for all.
func AskSweep(s *config.Sweep) (*Question, error) {
	runs, err := s.Points()
	q := &Question{Command: "simulate", Name: s.Name, Axes: append([]string{}, s.Axes...), Runs: runs,
		Inputs: s.Paths()}
	if err == nil && len(s.Axes) == 0 && s.Alter == nil {
		q.Config, err = s.Variants[0].Config.TOML()
	}
	return q, err
}

// Points lists the runs that are known.
func (q *Question) Points() []config.Point {
	points := make([]config.Point, len(q.Runs))
	for i := range q.Runs {
		points[i] = q.Runs[i].Point
	}
	return points
}

// Settings is what the axes set in each of the runs that are known, by key; nil without axes.
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

// toml is the text of the folder's question.
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

// multiline is a TOML string in lines of its own where it can be.
func multiline(text string) string {
	if strings.Contains(text, "'''") {
		return strconv.Quote(text)
	}
	return "'''\n" + text + "'''"
}
