package answers

import (
	"bytes"
	"html"
	"image/png"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/diff"
	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/show"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/pattern"
	"github.com/sparseserve/sparseserve/traces"
)

// everyDocument has a document of each exported builder of the package, by the builder's name.
func everyDocument(t *testing.T) map[string]*doc.Doc {
	t.Helper()
	got, outcomes := must(t), someOutcomes()
	folder := func(name string) *doc.Doc { return got(Read(filepath.Join("testdata", name))) }
	runs := sweepOf(map[string]any{"a.x": 1.0, "a.y": 2.0, "workload.rate": 0.1},
		map[string]any{"a.x": 2.0, "a.y": 3.0, "workload.rate": 0.2})
	runs.Name, runs.Unit, runs.Asked = "sweep", "requests/s", []string{"what was asked."}
	runs.Sums[0].Rejected, runs.Sums[1].Preempted, runs.Sums[0].SLO = 3, 4, "a level"
	runs.Sums[0].PrefixCache = &metrics.PrefixStats{PromptTokens: 9, HitTokens: 3, HitShare: 0.3}
	runs.Sums[0].Warnings = []warn.Warning{warn.New(warn.UnstableQueue, "unstable"),
		warn.New(warn.HeadsSampled, "heads are sampled")}
	figuresOf, err := runs.Figures()
	if err != nil {
		t.Fatal(err)
	}
	runsDoc := runs.Doc()
	runsDoc.Figures = figuresOf
	record := &validate.ReplayReport{Name: "r", File: "r.csv", Format: "csv", Recorded: 2, Failed: 1,
		Summary: metrics.Summary{System: "vllm", Warnings: []warn.Warning{warn.New(warn.Window,
			"window")}},
		Comparisons: []validate.RecordComparison{{Run: "r", Stage: "all", Metric: "ttft_mean_s",
			Measured: 2, Simulated: 1.5, Error: new(-0.25), Requests: 2}}}
	compared := Comparison(record)
	if compared.Figures, err = Requests(filepath.Join("testdata", "requests"), record); err != nil {
		t.Fatal(err)
	}
	trace := &traces.Description{}
	if err := readJSON(filepath.Join("testdata", "description"), DescriptionFile, trace); err != nil {
		t.Fatal(err)
	}
	return map[string]*doc.Doc{
		"Runs.Doc": runsDoc, "Goodputs": Goodputs("g", goodputs()), "Purchase": Purchase("p", bought(t)),
		"WhatIf": WhatIf("w", varied()), "Comparison": compared, "Trace": Trace(trace),
		"Diff": Diff(&diff.Report{Rows: []diff.Row{{Point: "p", Metric: "ttft_mean_s", A: 1, B: 2}},
			Settings: []diff.Setting{{Key: "gpu", A: "a", B: "b"}}, OnlyA: []string{"q"}}, "a", "b"),
		"Validation": Validation(&validate.Report{Name: "v", Device: "a card",
			Runs: []validate.ValidatedRun{validated("good", 1, 0.01, false),
				validated("bad", 1, -0.07, false), validated("over", 2, 0.5, true)}}),
		"Ablation": Ablation(&validate.Ablation{Cards: make([]validate.AblationCard, 5),
			Runs: make([]int, 5), Errors: make([]validate.StepErrors, 5),
			Rows: []validate.AblationRow{{Concept: "c", Part: "p", Worth: make([]validate.StepErrors, 5)}}}),
		"Calibration": Calibration("c", &hw.Provenance{Device: "a card", Notes: []string{"a note"}},
			[]hw.Fit{{Model: "gemm", Samples: 9, Within5: 0.5, Flags: []string{"a flag"}}}),
		"Patterns": Patterns([]pattern.Group{{Heads: 4}}),
		"Claims":   Claims(outcomes), "NullClaims": NullClaims(outcomes),
		"SwappedClaims": SwappedClaims(outcomes, outcomes),
		"SearchedClaims": SearchedClaims(strings.Fields("a=1 b=2 c=3 d=4 e=5 f=6 g=7"),
			[][]papers.Outcome{outcomes, outcomes, outcomes, outcomes, outcomes, outcomes, outcomes,
				outcomes}),
		"SensitiveClaims": SensitiveClaims([]papers.Tuned{{Name: "n", Value: 1, Reason: "why"}},
			[][]papers.Outcome{outcomes, outcomes, outcomes}),
		"Cards": got(Cards()), "Models": got(Models()), "ServingEngines": got(ServingEngines()),
		"Systems": got(Systems()), "Selections": got(Selections()), "Evictions": got(Evictions()),
		"Routers": got(Routers()), "Traces": got(Traces()), "Experiments": got(Experiments()),
		"Prices": got(Prices("")), "Card": got(Card("h100-80gb")), "Model": got(Model("llama3-8b")),
		"Engine": got(Engine("vllm-0.15")), "Prefills": got(Prefills()),
		"Prefill": got(Prefill(sim.PrefillMInference)), "Read": folder("purchase"),
	}
}

// builder matches the signature of a function or method that returns a document.
var builder = regexp.MustCompile(
	`(?m)^func (?:\(\w+ \*?(\w+)\) )?([A-Z]\w*)\([^{]*?\) \(?\*doc\.Doc\b`)

// The table above has every function and method of the package that makes a document.
func TestEveryBuilderHasADocument(t *testing.T) {
	var builders []string
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil || strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, m := range builder.FindAllStringSubmatch(string(text), -1) {
			builders = append(builders, strings.TrimPrefix(m[1]+"."+m[2], "."))
		}
	}
	have := slices.Sorted(maps.Keys(everyDocument(t)))
	if slices.Sort(builders); !slices.Equal(builders, have) {
		t.Errorf("builders are\n%q, documents are of\n%q", builders, have)
	}
}

// reader is what is left of a medium for a reader: without its markup.
var (
	tag     = regexp.MustCompile(`(?s)<style>.*?</style>|<script>.*?</script>|<[^>]*>`)
	borders = strings.NewReplacer("│", " ", "╭", " ", "╮", " ", "╰", " ", "╯", " ", "─", " ",
		"┬", " ", "┴", " ", "├", " ", "┤", " ", "┼", " ")
	marks = strings.NewReplacer("| ", " ", " |", " ", `\|`, "|", `\\`, `\`, "&lt;", "<")
)

var readers = []struct {
	name   string
	render func(io.Writer, *doc.Doc) error
	plain  func(string) string
}{
	{"text", func(w io.Writer, d *doc.Doc) error { return show.Text(w, d, show.Options{Whole: true}) },
		borders.Replace},
	{"markdown", show.Markdown, marks.Replace},
	{"html", show.HTML,
		func(page string) string { return html.UnescapeString(tag.ReplaceAllString(page, " ")) }},
	{"csv", show.CSV, strings.NewReplacer(",", " ", `"`, " ").Replace},
}

// punctuation is what media add to words.
const punctuation = ":.,;'()"

// words lists the words that a reader finds of a document, with their number. A CSV has
// numbers with all digits.
func words(d *doc.Doc, csv bool) map[string]int {
	all := map[string]int{}
	add := func(texts ...string) {
		for _, text := range texts {
			if csv {
				text = strings.NewReplacer(",", " ", `"`, " ").Replace(text)
			}
			for word := range strings.FieldsSeq(text) {
				if word = strings.Trim(word, punctuation); word != "" {
					all[word]++
				}
			}
		}
	}
	add(d.Title)
	add(d.Lead...)
	add(d.Answers...)
	for _, w := range d.Warnings {
		add(w.Text, w.Of)
	}
	for i := range d.Tables {
		t := &d.Tables[i]
		add(t.Title, t.Under, t.Note)
		add(t.Legend...)
		for _, c := range t.Shown() {
			add(t.Columns[c].Name, t.Columns[c].Unit)
			for _, r := range t.Rows {
				if csv && c < len(r.Cells) && r.Cells[c].Value != nil {
					add(strconv.FormatFloat(*r.Cells[c].Value, 'g', -1, 64))
				} else {
					add(r.At(c))
				}
			}
		}
	}
	for _, f := range d.Files {
		add(f.Name, f.Text)
	}
	for i := range d.Figures {
		f := &d.Figures[i]
		for _, c := range f.Charts {
			add(c.Title, c.Y)
		}
		if caption := f.Caption; !csv { // a page has the lead once
			for _, lead := range d.Lead {
				caption = strings.TrimPrefix(strings.TrimSpace(caption), lead)
			}
			add(caption)
		}
	}
	return all
}

// Every part of every builder's document is shown by every renderer: no title, sentence, caveat,
// cell of a table or caption is lost in a medium, so that the terminal, the page and the Markdown
// have the same caveats. A table of the terminal has at most eight columns.
func TestEveryPartOfEveryDocument(t *testing.T) {
	for name, d := range everyDocument(t) {
		for _, medium := range readers {
			var out bytes.Buffer
			if err := medium.render(&out, d); err != nil {
				t.Fatal(err)
			}
			found := map[string]int{}
			for word := range strings.FieldsSeq(medium.plain(out.String())) {
				found[strings.Trim(word, punctuation)]++
			}
			for word, n := range words(d, medium.name == "csv") {
				if found[word] < n {
					t.Errorf("%s: %s has %q %d times, want %d", name, medium.name, word, found[word], n)
				}
			}
			for line := range strings.Lines(out.String()) {
				if medium.name == "text" && strings.Count(line, "│") > 9 {
					t.Errorf("%s: a table of the terminal has more than eight columns:\n%s", name, line)
				}
			}
		}
	}
}

// Every chart is drawn with its title, label and caption. All formats have one layout, and an SVG
// has its texts.
func TestEveryChartIsDrawn(t *testing.T) {
	svgText := regexp.MustCompile(`(?s)<text[^>]*>(.*?)</text>`)
	for name, d := range everyDocument(t) {
		dir := t.TempDir()
		paths, err := figures.Draw(t.Context(), dir, d.Figures, "png", "svg")
		if err != nil || len(paths) != 2*len(d.Figures) {
			t.Fatalf("%s: drew %q, %v", name, paths, err)
		}
		for i := range d.Figures {
			f := &d.Figures[i]
			text, err := os.ReadFile(filepath.Join(dir, f.Name+".svg"))
			if err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, m := range svgText.FindAllStringSubmatch(string(text), -1) {
				texts = append(texts, html.UnescapeString(m[1]))
			}
			drawn := strings.Join(strings.Fields(strings.Join(texts, " ")), " ")
			wanted := []string{f.Caption}
			for _, c := range f.Charts {
				wanted = append(wanted, c.Title, c.Y)
			}
			for _, want := range wanted {
				if !strings.Contains(drawn, strings.Join(strings.Fields(want), " ")) {
					t.Errorf("%s: the picture %s lacks %q, has %q", name, f.Name, want, drawn)
				}
			}
			picture, err := os.Open(filepath.Join(dir, f.Name+".png"))
			if err != nil {
				t.Fatal(err)
			}
			if size, err := png.DecodeConfig(picture); err != nil || size.Width < 300 || size.Height < 150 {
				t.Errorf("%s: %s.png is %+v, %v", name, f.Name, size, err)
			}
			picture.Close()
		}
	}
}
