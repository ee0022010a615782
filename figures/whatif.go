package figures

import (
	"cmp"
	"context"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/sparseserve/sparseserve/internal/files"
)

// whatIf is what the figures need of a what-if.
type whatIf struct {
	Label  string       `json:"label"`
	Higher bool         `json:"higher_is_better"`
	Cases  []whatIfCase `json:"cases"`
}

type whatIfCase struct {
	Name     string       `json:"name"`
	Model    string       `json:"model"`
	GPU      string       `json:"gpu"`
	Rate     float64      `json:"rate"`
	Sessions bool         `json:"sessions"` // of the rate
	Seeds    []uint64     `json:"seeds"`
	Requests int          `json:"requests"`
	Base     whatIfValue  `json:"base"`
	Knobs    []whatIfKnob `json:"knobs"`
	Heat     *heatMap     `json:"heat"`
}

type whatIfValue struct {
	Value float64 `json:"value"`
}

type whatIfKnob struct {
	Knob   string        `json:"knob"`
	About  string        `json:"about"`
	Factor bool          `json:"factor"`
	Base   string        `json:"base"`
	Points []whatIfPoint `json:"points"`
}

type whatIfPoint struct {
	Setting string   `json:"setting"`
	Value   float64  `json:"value"`
	Low     *float64 `json:"change_low"` // of the relative change
	High    *float64 `json:"change_high"`
}

// DrawWhatIf draws the folder of a what-if into dir: tornado.png, the effect of each knob, the
// largest first, and heat.png, two knobs together; of a folder without one of them, the other. It
// returns the paths.
func DrawWhatIf(ctx context.Context, dir, folder string, formats ...string) ([]string, error) {
	path := filepath.Join(folder, "whatif.json")
	var w whatIf
	if err := files.ReadJSON(path, &w); err != nil {
		return nil, err
	}
	if len(w.Cases) == 0 {
		return nil, fmt.Errorf("%s: no case", path)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var files []string
	for _, one := range []func(string, *whatIf, []string) ([]string, error){drawTornado, drawHeat} {
		paths, err := one(dir, &w, formats)
		if files = append(files, paths...); err != nil {
			return files, err
		}
	}
	return files, nil
}

// tableDots is the resolution of a PNG that may have many rows: half the bytes, and text still
// reads.
const tableDots = dotsPerInch * 3 / 5

// Sizes of a tornado in points.
const (
	tornadoBar    = 15
	tornadoGap    = 9
	tornadoHead   = 26
	tornadoFoot   = 40
	tornadoWidth  = 560 // of the bars
	tornadoMargin = 0.16
)

// tornadoLooks are of settings below what the configuration has, and above, or of others.
var tornadoLooks = [2]look{
	{color: color.RGBA{0x00, 0x72, 0xb2, 0xff}, hatching: 6},
	{color: color.RGBA{0xe6, 0x9f, 0x00, 0xff}},
}

// tornado is the panel of a case that is laid out.
type tornado struct {
	*whatIfCase
	knobs     []whatIfKnob // the most effect first
	low, high float64      // of the axis
	most      float64      // that is possible, 100 of shares in %
	height    vg.Length
}

// drawTornado draws a panel a case.
func drawTornado(dir string, w *whatIf, formats []string) ([]string, error) {
	var panels []tornado
	for i := range w.Cases {
		if c := &w.Cases[i]; len(c.Knobs) > 0 {
			panels = append(panels, layTornado(c, w.most()))
		}
	}
	if len(panels) == 0 {
		return nil, nil
	}
	style := text.Style{Color: color.Black, Font: sans(errorLabel), YAlign: text.YCenter,
		Handler: plot.DefaultTextHandler}
	left, height := vg.Length(0), vg.Length(0)
	for i := range panels {
		for _, k := range panels[i].knobs {
			left = max(left, style.Width(k.name()))
		}
		height += panels[i].height
	}
	left += 14
	caption := wrap(w.caption(true), captionStyle(), left+tornadoWidth)
	width := left + tornadoWidth + 2*margin
	height += legendHeight + captionLine*vg.Length(len(caption)) + 2*margin
	return writeFormats(filepath.Join(dir, "tornado"), formats, tableDots, width, height,
		func(canvas draw.Canvas) {
			canvas.SetColor(color.White)
			canvas.Fill(canvas.Rectangle.Path())
			c := draw.Crop(canvas, margin, -margin, margin, -margin)
			drawLegend(c, [][]entry{{
				{name: "set below what there is", look: tornadoLooks[0], kind: boxSample},
				{name: "set above, or to another value", look: tornadoLooks[1], kind: boxSample},
			}})
			drawCaption(c, caption)
			top := c.Max.Y - legendHeight
			for i := range panels {
				panels[i].draw(draw.Crop(c, 0, 0, top-panels[i].height-c.Min.Y, top-c.Max.Y), left,
					style, w.Label)
				top -= panels[i].height
			}
		})
}

// layTornado orders the knobs of a case and gives them an axis with room for their values.
func layTornado(c *whatIfCase, most float64) tornado {
	t := tornado{whatIfCase: c, knobs: slices.Clone(c.Knobs), low: c.Base.Value, high: c.Base.Value,
		most: most, height: tornadoHead + tornadoFoot}
	effect := func(k *whatIfKnob) float64 {
		low, high := c.Base.Value, c.Base.Value
		for _, p := range k.Points {
			low, high = math.Min(low, p.Value), math.Max(high, p.Value)
		}
		return high - low
	}
	slices.SortStableFunc(t.knobs, func(a, b whatIfKnob) int {
		return cmp.Compare(effect(&b), effect(&a))
	})
	for _, k := range t.knobs {
		t.height += tornadoBar*vg.Length(len(k.Points)) + tornadoGap
		for _, p := range k.Points {
			low, high := t.interval(&p)
			t.low, t.high = min(t.low, p.Value, low), max(t.high, p.Value, high)
		}
	}
	room := tornadoMargin * (t.high - t.low)
	switch {
	case room > 0:
	case t.high == 0: // all is 0, and there is nothing to scale by
		t.high = min(1, t.most)
	default: // nothing has an effect
		room = 0.1 * math.Abs(t.high)
	}
	t.low, t.high = t.low-room, t.high+room
	return t
}

// most is the most that the metric can be.
func (w *whatIf) most() float64 {
	if strings.HasSuffix(w.Label, "(%)") {
		return 100
	}
	return math.Inf(1)
}

// interval is the point's, in the unit of the metric and within what is possible; its value where
// it has none.
func (t *tornado) interval(p *whatIfPoint) (low, high float64) {
	if p.Low == nil || p.High == nil {
		return p.Value, p.Value
	}
	return max(t.Base.Value*(1+*p.Low), 0), min(t.Base.Value*(1+*p.High), t.most)
}

func (t *tornado) draw(c draw.Canvas, left vg.Length, style text.Style, label string) {
	x := func(v float64) vg.Length {
		return c.Min.X + left + vg.Length((v-t.low)/(t.high-t.low))*(c.Max.X-c.Min.X-left)
	}
	head := style
	head.XAlign = text.XLeft
	c.FillText(head, vg.Point{X: c.Min.X, Y: c.Max.Y - tornadoHead/2}, t.head())
	bottom := c.Min.Y + tornadoFoot
	tick := style
	tick.XAlign = text.XCenter
	for _, one := range linearTicks(t.low, t.high) {
		if one.Value < 0 || one.Value > t.most {
			continue // beyond are texts alone
		}
		c.StrokeLine2(draw.LineStyle{Color: color.Gray{0xdd}, Width: 0.6}, x(one.Value), bottom,
			x(one.Value), c.Max.Y-tornadoHead)
		c.FillText(tick, vg.Point{X: x(one.Value), Y: bottom - 9}, one.Label)
	}
	c.FillText(tick, vg.Point{X: (x(t.low) + x(t.high)) / 2, Y: bottom - 26}, label)
	y := c.Max.Y - tornadoHead
	for i := range t.knobs {
		k := &t.knobs[i]
		size := tornadoBar * vg.Length(len(k.Points))
		y -= tornadoGap / 2
		c.FillText(head, vg.Point{X: c.Min.X, Y: y - size/2}, k.name())
		for j := range k.Points {
			t.bar(&c, k, &k.Points[j], x, y-tornadoBar*vg.Length(j), style)
		}
		y -= size + tornadoGap/2
	}
	base := x(t.Base.Value)
	c.StrokeLine2(draw.LineStyle{Color: color.Gray{0x40}, Width: 1}, base, bottom, base,
		c.Max.Y-tornadoHead)
}

// bar draws the effect of one setting, from what there is to what it makes of it.
func (t *tornado) bar(c *draw.Canvas, k *whatIfKnob, p *whatIfPoint, x func(float64) vg.Length,
	top vg.Length, style text.Style) {
	look := tornadoLooks[1]
	if v, base, ok := k.numbers(p); ok && v < base {
		look = tornadoLooks[0]
	}
	from, to := x(t.Base.Value), x(p.Value)
	box := vg.Rectangle{Min: vg.Point{X: min(from, to), Y: top - tornadoBar + 1.5},
		Max: vg.Point{X: max(from, to), Y: top - 1.5}}
	if box.Max.X-box.Min.X >= thinnest {
		corners := []vg.Point{box.Min, {X: box.Max.X, Y: box.Min.Y}, box.Max,
			{X: box.Min.X, Y: box.Max.Y}}
		c.FillPolygon(look.fill(), corners)
		look.hatch(c, box)
		c.StrokeLines(draw.LineStyle{Color: color.Black, Width: 0.6}, append(corners, corners[0]))
	}
	middle := (box.Min.Y + box.Max.Y) / 2
	low, high := t.interval(p)
	if high > low {
		line := draw.LineStyle{Color: color.Gray{0x30}, Width: 0.9}
		c.StrokeLine2(line, x(low), middle, x(high), middle)
		for _, end := range []vg.Length{x(low), x(high)} {
			c.StrokeLine2(line, end, middle-2.5, end, middle+2.5)
		}
	}
	style.Font.Size = 11
	style.XAlign = text.XLeft
	at := max(to, x(high)) + 4
	if to < from {
		style.XAlign, at = text.XRight, min(to, x(low))-4
	}
	c.FillText(style, vg.Point{X: at, Y: middle}, k.setting(p.Setting))
}

// name is the knob with what there is of it.
func (k *whatIfKnob) name() string {
	if k.Factor || k.Base == "" {
		return k.Knob
	}
	return k.Knob + " (" + k.setting(k.Base) + ")"
}

// setting is a value of the knob in words.
func (k *whatIfKnob) setting(value string) string {
	if k.Factor {
		return "x " + value
	}
	return value
}

// numbers are a setting and what there is, where both are numbers.
func (k *whatIfKnob) numbers(p *whatIfPoint) (value, base float64, ok bool) {
	value, err1 := strconv.ParseFloat(p.Setting, 64)
	base, err2 := strconv.ParseFloat(k.Base, 64)
	return value, base, err1 == nil && err2 == nil
}

// head says whose the panel is.
func (c *whatIfCase) head() string {
	text := fmt.Sprintf("%s, %s on %s: %s", label(c.Name), modelLabel(c.Model), gpuLabel(c.GPU),
		digits(c.Base.Value))
	if c.Rate > 0 {
		run := Run{Rate: c.Rate}
		if c.Sessions {
			run.trace = "sessions"
		}
		text += " at " + loadName(&run)
	}
	return text
}

// caption says what a picture is of, and what its whiskers are.
func (w *whatIf) caption(whiskers bool) string {
	c := &w.Cases[0]
	seeds := make([]string, len(c.Seeds))
	for i, s := range c.Seeds {
		seeds[i] = strconv.FormatUint(s, 10)
	}
	better := "lower"
	if w.Higher {
		better = "higher"
	}
	words := []string{fmt.Sprintf("%s, %s is better; %d requests a run, %s, the same arrivals for "+
		"every setting.", w.Label, better, c.Requests, seedsText(seeds))}
	for _, k := range c.Knobs {
		if whiskers && slices.ContainsFunc(k.Points, func(p whatIfPoint) bool { return p.Low != nil }) {
			words = append(words, "Whiskers: 95 % interval of the change over seeds.")
			break
		}
	}
	return strings.Join(words, " ")
}
