package figures

import (
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
)

// Titles and names below bars are as small as their panel is narrow, and no smaller where they
// fit.
func TestWordsFitTheirPanel(t *testing.T) {
	c := chart{title: "first\n" + strings.Repeat("a long title of a panel ", 5), groups: []group{
		{label: "vLLM+MInference"}, {label: "SparseServe+MInference"}, {label: "PSA"}}}
	const room = 300 * vg.Length(1)
	plt := newPlot(&c, nil)
	c.shrink(plt, room)
	title, below := plt.Title.TextStyle, plt.X.Tick.Label
	if w := title.Width(c.title); w > 1.001*room || w < 0.99*room {
		t.Errorf("the title is %.0f points wide of %.0f", w, room)
	}
	if w := below.Width("SparseServe+MInference"); w > (room-axisWidth)/3 {
		t.Errorf("a group's name is %.0f points wide of %.0f", w, (room-axisWidth)/3)
	}
	short := chart{title: "short", groups: []group{{label: "PSA"}}}
	plt = newPlot(&short, nil)
	if short.shrink(plt, room); plt.Title.TextStyle.Font.Size != labelSize ||
		plt.X.Tick.Label.Font.Size != tickSize {
		t.Error("short words are smaller, too")
	}
}

// Runs of a closed loop are named by their clients.
func TestClosedLoopsHaveNoRate(t *testing.T) {
	for want, v := range map[string]validated{
		"vLLM, Llama3-8B, 1 client, H200":  {Concurrency: 1},
		"vLLM, Llama3-8B, 8 clients, H200": {Concurrency: 8},
		"vLLM, Llama3-8B, 0.5 req/s, H200": {Rate: 0.5},

		"vLLM, Llama3-8B, 1.5 sessions/s, H200": {Rate: 1.5, Trace: "sessions"},
		"vLLM, Llama3-8B, 2 clients, H200":      {Concurrency: 2, Trace: "sessions"},
	} {
		v.System, v.Model, v.GPU = "vllm", "llama3-8b", "h200"
		if got := label(v.System) + ", " + v.where(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
