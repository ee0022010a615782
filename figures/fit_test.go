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
