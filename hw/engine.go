package hw

import (
	"cmp"
	"embed"
	"reflect"

	"github.com/sparseserve/sparseserve/sim"
)

//go:embed engines/*.toml
var engineFiles embed.FS

// Engine describes a serving engine: its time on the host, how it launches its
// kernels, and its defaults. A file of engines/.
type Engine struct {
	Name  string `toml:"name"`
	Title string `toml:"title"`
	// Kernels is the library that computes: a key of a card's [kernels].
	Kernels  string         `toml:"kernels"`
	Defaults EngineDefaults `toml:"defaults"`

	EngineCosts
}

// EngineCosts is the engine's own time, on the host and between kernels.
type EngineCosts struct {
	// PlanAhead is whether the batch of a step is planned, and its work launched, while the step
	// before still runs (vLLM's asynchronous scheduling). Host.Step, Request and Token then overlap
	// with the GPU, and a request waits for the end of the step after the one that runs as it
	// arrives.
	PlanAhead bool `toml:"plan_ahead,omitempty"`
	// LoadsInTurn is whether a chunk of a prefill loads the prefix that it begins with as any other
	// blocks of a layer, once its slots are free. Else its loads overlap the layer before.
	LoadsInTurn bool `toml:"loads_in_turn,omitempty"`
	// LinearGrid is a number of tokens of whose multiples linears of more tokens have as many rows;
	// 0 or 1: as many as tokens.
	LinearGrid int `toml:"linear_grid,omitempty"`
	// LinearFaster is whether they have the multiple after the next where that was measured to take
	// less time by a twentieth and more.
	LinearFaster  bool          `toml:"linear_faster,omitempty"`
	Host          Host          `toml:"host"`
	FrontEnd      FrontEnd      `toml:"front_end,omitempty"`
	Graphs        Graphs        `toml:"graphs,omitempty"`
	LayerOverhead []OverheadRow `toml:"layer_overhead,omitempty"`
}

// FrontEnd is the time outside the scheduler's loop, which TTFT and end-to-end
// latency have in them.
type FrontEnd struct {
	// from the client until the scheduler has the request
	Request Figure `toml:"request,omitempty" dim:"time,optional"`
	// from the end of a step until the client has its token
	Reply Figure `toml:"reply,omitempty" dim:"time,optional"`
}

// Graphs are the engine's CUDA graphs. A batch of at most as many tokens as the
// largest is padded to the next size; larger ones run kernel by kernel.
type Graphs struct {
	Tokens []int  `toml:"tokens,omitempty"` // captured sizes, rising
	Source string `toml:"source,omitempty"`
}

// EngineDefaults are keys of [system] that the engine sets: its scheduler and limits.
type EngineDefaults struct {
	Base        string  `toml:"base"`
	Utilisation float64 `toml:"utilisation"`
	BlockTokens int     `toml:"block_tokens"`
	ChunkTokens int     `toml:"chunk_tokens"`
	MaxTokens   int     `toml:"max_tokens"`
	MaxRequests int     `toml:"max_requests"`
	Watermark   float64 `toml:"watermark"`
	Sampling    string  `toml:"sampling"`
}

// EngineNames lists the built-in engines.
func EngineNames() []string { return names(engineFiles, "engines") }

// LoadEngine returns a built-in engine by name, or reads an engine file.
func LoadEngine(nameOrPath string) (*Engine, error) {
	return load[Engine]("engine", engineFiles, "engines", nameOrPath)
}

func (e *Engine) validate() error {
	switch {
	case e.Name == "":
		return wrong("name", "want a name")
	case e.Kernels == "":
		return wrong("kernels", "want the library that computes: sparseserve, fa2 or fa3")
	}
	return cmp.Or(checkFigures(e), e.EngineCosts.validate())
}

func (e *EngineCosts) validate() error {
	last := 0
	for _, n := range e.Graphs.Tokens {
		if n <= last {
			return wrong("graphs.tokens", "want sizes that rise, got %d", n)
		}
		last = n
	}
	if e.LinearGrid < 0 || e.LinearGrid > mostLinearGrid {
		return wrong("linear_grid", "want 0 to %d tokens, got %d", mostLinearGrid, e.LinearGrid)
	}
	if e.LinearFaster && e.LinearGrid < 2 {
		return wrong("linear_faster", "want linear_grid above 1, whose multiples it chooses from, got %d",
			e.LinearGrid)
	}
	return checkOverhead(e.LayerOverhead)
}

const mostLinearGrid = 4096

// linearRows is the rows that linears of so many tokens have.
func (e *EngineCosts) linearRows(l *gemm, tokens int) int {
	g := e.LinearGrid
	if tokens <= g || g < 2 {
		return tokens
	}
	rows := (tokens + g - 1) / g * g
	if e.LinearFaster && l.slower(rows, rows+g) {
		rows += g
	}
	return rows
}

// LinearRows returns, by a number of tokens, the rows that the engine's linears have: at least as
// many, never fewer for more tokens.
func LinearRows(p *Profile, m *Model) func(tokens int) int {
	l := newGEMM(p, m)
	return func(tokens int) int { return p.linearRows(&l, tokens) }
}

// padded is the tokens that a batch's linears run over.
func (g *Graphs) padded(tokens int) int {
	for _, size := range g.Tokens {
		if size >= tokens {
			return size
		}
	}
	return tokens
}

// largest is the most tokens that a graph holds.
func (g *Graphs) largest() int {
	if n := len(g.Tokens); n > 0 {
		return g.Tokens[n-1]
	}
	return 0
}

// onHost returns the engine's times on a host of the given speed.
func (e EngineCosts) onHost(speed Figure) EngineCosts {
	x := speed.SI()
	if x == 1 {
		return e
	}
	why := "a host of another speed"
	eachFigure(reflect.ValueOf(&e).Elem(), func(_ string, f *Figure, tag reflect.StructTag) {
		switch dim := tag.Get("dim"); {
		case !f.Set() || tag.Get("on") == "gpu":
		case dim == "rate,optional" || dim == "rate":
			f.scale(x, why)
		default:
			f.scale(1/x, why)
		}
	})
	return e
}

// Server is what of the engine the simulated server needs to know.
func (e *EngineCosts) Server() sim.Engine {
	return sim.Engine{PlanAhead: e.PlanAhead, LoadsInTurn: e.LoadsInTurn,
		Request: nanoseconds(e.FrontEnd.Request.optional()),
		Reply:   nanoseconds(e.FrontEnd.Reply.optional())}
}
