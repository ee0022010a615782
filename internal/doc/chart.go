package doc

// Figure is charts under one caption. It is one picture file.
type Figure struct {
	Name    string   `json:"name"` // of the file, without its extension
	Title   string   `json:"title,omitempty"`
	Caption string   `json:"caption,omitempty"` // what was run, and what intervals are
	Charts  []*Chart `json:"charts"`
}

// Kind is how a chart is drawn.
type Kind string

// Kinds of charts.
const (
	Lines   Kind = "lines"   // over x
	Bars    Kind = "bars"    // of parts on top of each other
	Effects Kind = "effects" // changes from 0, as of a tornado
	HeatMap Kind = "heat"
)

// Chart is one panel.
type Chart struct {
	ID    string `json:"id,omitempty"` // of its element in HTML
	Kind  Kind   `json:"kind"`         // empty: Lines
	Title string `json:"title"`
	X     string `json:"x"` // labels with units
	Y     string `json:"y"`
	LogX  bool   `json:"logX,omitempty"`
	LogY  bool   `json:"logY,omitempty"`
	Low   bool   `json:"low,omitempty"` // of half the height
	// Top is where the axis of y ends below some points, which would hide the others: they are
	// marked at it, with their values. 0 shows all.
	Top     float64   `json:"top,omitempty"`
	Lines   []Line    `json:"lines,omitempty"`
	Bars    []Bar     `json:"bars,omitempty"`
	Marks   []float64 `json:"marks,omitempty"`  // of x
	Levels  []float64 `json:"levels,omitempty"` // of y, or of bars
	Effects []Effect  `json:"effects,omitempty"`
	Base    float64   `json:"base,omitempty"` // value that effects start from
	Heat    *Heat     `json:"heat,omitempty"`
}

// Line is one series of points.
type Line struct {
	Name   string  `json:"name"`
	Color  string  `json:"color"` // #rrggbb
	Dashed bool    `json:"dashed,omitempty"`
	Bare   bool    `json:"bare,omitempty"` // without markers
	Dots   bool    `json:"dots,omitempty"` // without a line
	Points []Point `json:"points"`
}

// Point is a mean over seeds, with its 95 % interval where it has one.
type Point struct {
	X    float64  `json:"x"`
	Y    float64  `json:"y"`
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
	// Runs are the values of single runs, where these are too few for an interval.
	Runs []float64 `json:"runs,omitempty"`
	Note string    `json:"note,omitempty"` // what to read it with, such as "unstable queue"
}

// Bar is one bar of parts on top of each other.
type Bar struct {
	Name  string `json:"name"`
	Note  string `json:"note,omitempty"` // at its end; empty for its value
	Parts []Part `json:"parts"`
	// Runs are the heights of single runs, where these are too few for an interval.
	Runs []float64 `json:"runs,omitempty"`
}

// Part is a part of a bar.
type Part struct {
	Name  string   `json:"name"`
	Color string   `json:"color"`
	Value float64  `json:"value"`
	Low   *float64 `json:"low,omitempty"`
	High  *float64 `json:"high,omitempty"`
}

// Effect is what one setting of a knob makes of the chart's base. Changes are relative to it, in %.
// The settings of a knob stand together.
type Effect struct {
	Knob    string   `json:"knob"` // with what the configuration has of it
	Setting string   `json:"setting"`
	Value   float64  `json:"value"`
	Change  float64  `json:"change"`
	Low     *float64 `json:"low,omitempty"` // ends of the interval of the change
	High    *float64 `json:"high,omitempty"`
	Below   bool     `json:"below,omitempty"` // the setting is below what the configuration has
}

// Name is the knob and its setting.
func (e *Effect) Name() string { return e.Knob + ": " + e.Setting }

// Heat is a heat map of two knobs. Cells without a value are left out.
type Heat struct {
	A       string     `json:"a"`
	B       string     `json:"b"`
	ValuesA []string   `json:"valuesA"`
	ValuesB []string   `json:"valuesB"`
	Cells   []HeatCell `json:"cells"`
	Higher  bool       `json:"higher"` // is better
	// Full is the change that has the full colour, in %. 0 is the largest of all.
	Full float64 `json:"full,omitempty"`
	// Middle is what a change of 0 is; empty for "as configured".
	Middle string `json:"middle,omitempty"`
}

// HeatCell is one cell of a heat map. X and Y are indices of values of A and B.
type HeatCell struct {
	X      int     `json:"x"`
	Y      int     `json:"y"`
	Value  float64 `json:"value"`
	Change float64 `json:"change"`         // %
	Note   string  `json:"note,omitempty"` // in place of the change
}
