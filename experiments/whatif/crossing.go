package whatif

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/bracket"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// Answer is the answer to a threshold's question at one value.
type Answer struct {
	Setting string          `json:"setting"`
	Verdict bracket.Verdict `json:"verdict"`
	Value   float64         `json:"value"`
	Against float64         `json:"against"` // a bound, or the value without offloading
}

// Crossing is the value at which an answer changes for a case.
type Crossing struct {
	Name     string   `json:"name"`
	Question string   `json:"question"`
	Knob     string   `json:"knob"`
	Keys     []string `json:"keys"`
	// Low and High are the values of the knob between which the answer changes. Values between them
	// were not run. Holds and Fails are the answers at these values; each is nil if no value of the
	// range has that answer.
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	Holds *Answer  `json:"holds"`
	Fails *Answer  `json:"fails"`
	Own   *Answer  `json:"own,omitempty"` // of the configuration as it is
	Tried []Answer `json:"tried"`
	Text  string   `json:"text"` // the answer in words
}

// fineWidth and coarseWidth are the relative accuracies of each end of a crossing, as
// goodput.coarse asks for.
const fineWidth, coarseWidth = 0.02, 0.1

// end stores an answer on its side of the crossing.
func (c *Crossing) end(a *Answer, value **float64) {
	switch v, _ := number(a.Setting); a.Verdict {
	case bracket.Holds:
		c.Holds, *value = a, &v
	case bracket.Fails:
		c.Fails, *value = a, &v
	}
}

// find narrows the range to where the answer changes. ask answers for a value of the knob.
func (t *test) find(ask func(value string) (Answer, error)) (*Crossing, error) {
	knob := &t.r.Knob
	c := &Crossing{Name: t.Name, Question: t.Question, Knob: knob.Name, Keys: knob.Keys}
	line := bracket.Line{Width: t.width, Geometric: true,
		Round: func(v float64) float64 { v, _ = number(knob.round(v)); return v }}
	var values []float64
	for _, value := range t.r.At(scanned) {
		v, _ := number(value)
		values = append(values, v)
	}
	from, to, err := line.Cross(values, func(v float64) (bracket.Verdict, error) {
		a, err := ask(knob.round(v))
		c.Tried = append(c.Tried, a)
		return a.Verdict, err
	})
	if err != nil {
		return nil, err
	}
	low, high := c.at(knob.round(from)), c.at(knob.round(to))
	c.end(low, &c.Low)
	c.end(high, &c.High)
	c.Text = t.words(c, low, high)
	if !t.own {
		return c, nil
	}
	own, err := ask("")
	if err != nil {
		return nil, err
	}
	c.Own = &own
	c.Text += fmt.Sprintf("; as configured, %s: %s", t.answer(&own), t.compared(&own))
	return c, nil
}

// scanned is the number of range values that are tried, from the lower end, to find a verdict and
// its opposite.
const scanned = 5

// at returns the answer at a value that was tried.
func (c *Crossing) at(setting string) *Answer {
	a := c.Tried[slices.IndexFunc(c.Tried, func(a Answer) bool { return a.Setting == setting })]
	return &a
}

func (t *Threshold) answer(a *Answer) string {
	switch a.Verdict {
	case bracket.Holds:
		return t.Yes
	case bracket.Fails:
		return t.No
	}
	return "undecided"
}

// compared formats the metric with and without offloading.
func (t *test) compared(a *Answer) string {
	return fmt.Sprintf("%s %.3g with offloading, %.3g without", t.study.metric.Label, a.Value,
		a.Against)
}

// words describes the answer from its two sides.
func (t *test) words(c *Crossing, low, high *Answer) string {
	name := t.r.Knob.Name
	at := func(a *Answer) string {
		if !t.r.Knob.Factor {
			return stats.Short(a.Setting)
		}
		settings, err := t.r.Knob.settings(t.study.cfg, a.Setting)
		if err != nil || len(settings) == 0 {
			return "x " + stats.Short(a.Setting)
		}
		return fmt.Sprintf("x %s (%s)", stats.Short(a.Setting),
			strings.TrimSpace(config.SettingsLabel(settings)))
	}
	if low.Verdict == high.Verdict {
		return fmt.Sprintf("%s at %s = %s and at %s: no threshold between", t.answer(low), name,
			stats.Short(low.Setting), stats.Short(high.Setting))
	}
	text := fmt.Sprintf("%s at %s = %s, %s at %s", t.answer(low), name, at(low), t.answer(high),
		at(high))
	from, _ := number(low.Setting)
	to, _ := number(high.Setting)
	if slices.ContainsFunc(c.Tried, func(a Answer) bool {
		v, _ := number(a.Setting)
		return a.Verdict == bracket.Undecided && from < v && v < to
	}) {
		text += "; between them it is undecided"
	}
	return text
}
