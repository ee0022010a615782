package cli

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/experiments/whatif"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/traces"
)

const columnsPage = "../../docs/columns.md"

// The page has a row for each column of the CSV files, and no other row.
func TestCSVColumnsPage(t *testing.T) {
	found := map[string][]string{}
	var requests, steps bytes.Buffer
	spec := sim.Spec{}
	spec.Selection.On, spec.Selection.Policy = true, "psa"
	spec.Prefill.Attention, spec.PrefixCache.Mode = sim.PrefillMInference, "vllm"
	run.NewOutputs(run.Sink{Requests: &requests, Steps: &steps}, &spec, true, true)
	found["requests.csv"], found["steps.csv"] = header(&requests), header(&steps)
	found["summary.csv"] = summaryColumns(t)
	for file, tables := range map[string][]string{
		"experiments/capacity/write.go":        {"candidates.csv", "trail.csv"},
		"experiments/whatif/files.go":          {"whatif.csv"},
		"experiments/validate/report.go":       {"validate.csv"},
		"experiments/validate/replay_files.go": {"requests.csv", "compare.csv"},
		"internal/show/csv.go":                 {"pictures.csv"},
	} {
		for i, columns := range tablesIn(t, file) {
			found[tables[i]] = append(found[tables[i]], columns...)
		}
	}
	for file, columns := range found {
		rows := rowsOf(t, file)
		for _, c := range columns {
			if !slices.ContainsFunc(rows, func(row *regexp.Regexp) bool { return row.MatchString(c) }) {
				t.Errorf("%s lacks column %s of %s", columnsPage, c, file)
			}
		}
		for _, row := range rows {
			if !slices.ContainsFunc(columns, row.MatchString) {
				t.Errorf("%s: %s has no column %s", columnsPage, file, row)
			}
		}
	}
}

func header(text *bytes.Buffer) []string {
	return strings.Split(strings.TrimSpace(text.String()), ",")
}

// summaryColumns returns the columns of summary.csv for a run that has every optional figure.
func summaryColumns(t *testing.T) []string {
	t.Helper()
	whole := func(ctx context.Context, p config.Point, sink run.Sink) (metrics.Summary, error) {
		s, err := pretend(ctx, p, sink)
		s.ProgressiveStats, s.PrefixCache = &metrics.ProgressiveStats{}, &metrics.PrefixStats{}
		s.Window, s.Replicas, s.Concurrency = &metrics.Window{}, 2, 1
		return s, err
	}
	dir := t.TempDir()
	if status, _, errs := runHere(t.Context(), whole, "simulate", "--set", "workload.concurrency=1",
		"--set", "system.preset=vllm", "--out", dir); status != exitOK {
		t.Fatal(errs)
	}
	text, err := os.ReadFile(filepath.Join(dir, "summary.csv"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.Split(line, ",")
}

var (
	table  = regexp.MustCompile(`(?:NewTable\(|csvColumns = \[\]string\{)((?:\s*"[^"]*",?)+)`)
	quoted = regexp.MustCompile(`"([^"]*)"`)
)

// tablesIn returns the columns of each table that a source file writes.
func tablesIn(t *testing.T, file string) (all [][]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range table.FindAllStringSubmatch(string(text), -1) {
		var columns []string
		for _, c := range quoted.FindAllStringSubmatch(m[1], -1) {
			columns = append(columns, c[1])
		}
		all = append(all, columns)
	}
	if len(all) == 0 {
		t.Errorf("%s writes no table", file)
	}
	return all
}

var placeholder = regexp.MustCompile(`[A-Z]+`)

// rowsOf returns the first cells of the tables below a file's headings. A name in capitals stands
// for any name.
func rowsOf(t *testing.T, file string) (rows []*regexp.Regexp) {
	t.Helper()
	text, err := os.ReadFile(columnsPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range strings.Split(string(text), "\n### ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		if !strings.HasPrefix(title, "`"+file+"`") {
			continue
		}
		for line := range strings.Lines(body) {
			cells := strings.Split(line, "|")
			if len(cells) < 4 || !strings.Contains(cells[1], "`") {
				continue
			}
			for _, name := range strings.Split(cells[1], ",") {
				name = strings.Trim(name, " `")
				name = placeholder.ReplaceAllString(name, "[a-z0-9_]+")
				rows = append(rows, regexp.MustCompile("^"+name+"$"))
			}
		}
	}
	return rows
}

// The page has the fields of the JSON files with the comments of their declarations.
func TestJSONPage(t *testing.T) {
	p := fieldsPage{t: t, comments: map[string]map[string]string{}, seen: map[reflect.Type]bool{}}
	for _, f := range []struct {
		name string
		of   any
	}{
		{"summary.json", []metrics.Summary{}}, {"index.json", run.Index{}},
		{"goodput.json", []capacity.Goodput{}}, {"purchase.json", capacity.Purchase{}},
		{"whatif.json", whatif.Result{}}, {"compare.json", []validate.RecordComparison{}},
		{"replay.json", validate.ReplayReport{}}, {"validate.json", []validate.Comparison{}},
		{"description.json", traces.Description{}},
	} {
		kind := reflect.TypeOf(f.of)
		words := typeWords(kind)
		p.printf("### `%s`\n\n%s.\n\n", f.name, strings.ToUpper(words[:1])+words[1:])
		p.fields(kind)
	}
	testkit.Block(t, columnsPage, "json", strings.TrimSpace(p.String())+"\n")
}

// fieldsPage writes tables of structs' fields.
type fieldsPage struct {
	strings.Builder
	t        *testing.T
	comments map[string]map[string]string // by package and type, then by field
	seen     map[reflect.Type]bool
}

func (p *fieldsPage) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// structOf returns the struct of a field's type, if it is one of this project.
func structOf(kind reflect.Type) (reflect.Type, bool) {
	for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map},
		kind.Kind()) {
		kind = kind.Elem()
	}
	return kind, kind.Kind() == reflect.Struct && strings.Contains(kind.PkgPath(), "sparseserve")
}

// fields writes the keys of a struct, then the keys of its parts.
func (p *fieldsPage) fields(kind reflect.Type) {
	kind, ok := structOf(kind)
	if !ok || p.seen[kind] {
		return
	}
	p.seen[kind] = true
	var parts []reflect.Type
	var plain []string
	rows := p.rows(kind, &parts, &plain)
	if rows == "" && plain == nil {
		return // it writes itself
	}
	p.printf("**%s**", kind.Name())
	if len(plain) > 0 {
		p.printf(": %s", strings.Join(plain, ", "))
	}
	p.printf("\n\n")
	if rows != "" {
		p.printf("| key | |\n|-|-|\n%s\n", rows)
	}
	for _, part := range parts {
		p.fields(part)
	}
}

// rows returns the rows of the fields with a comment, and adds the other keys to plain.
func (p *fieldsPage) rows(kind reflect.Type, parts *[]reflect.Type, plain *[]string) (rows string) {
	comments := p.commentsOf(kind)
	for f := range fieldsIn(kind) {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		part, isStruct := structOf(f.Type)
		words := typeWords(f.Type)
		if words == "number" || words == "string" {
			words = "" // the name and the comment tell
		}
		about := cellOf(key, comments[f.Name], kind)
		switch {
		case f.Anonymous && key == "" && p.seen[part]:
			*plain = append(*plain, "the keys of "+part.Name())
		case f.Anonymous && key == "" && isStruct:
			rows += p.rows(part, parts, plain)
		case key == "" || key == "-":
		case about != "":
			rows += fmt.Sprintf("| `%s` | %s |\n", key, strings.TrimPrefix(words+"; "+about, "; "))
		case words != "":
			*plain = append(*plain, fmt.Sprintf("`%s` (%s)", key, words))
		default:
			*plain = append(*plain, "`"+key+"`")
		}
		if key != "" && key != "-" && isStruct {
			*parts = append(*parts, part)
		}
	}
	return rows
}

// fieldsIn iterates over the exported fields of a struct.
func fieldsIn(kind reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range kind.NumField() {
			if f := kind.Field(i); (f.IsExported() || f.Anonymous) && !yield(f) {
				return
			}
		}
	}
}

// cellOf returns the comment of a field, with keys in place of Go's names.
func cellOf(key, comment string, kind reflect.Type) string {
	for f := range fieldsIn(kind) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && len(f.Name) > 3 {
			comment = regexp.MustCompile(`\b`+f.Name+`\b`).ReplaceAllString(comment, "`"+name+"`")
		}
	}
	comment = strings.TrimPrefix(strings.TrimPrefix(comment, "`"+key+"` "), "is ")
	if strings.Count(comment, ".") == 1 {
		comment = strings.TrimSuffix(comment, ".")
	}
	return strings.ReplaceAll(comment, "nil", "null")
}

func typeWords(kind reflect.Type) string {
	switch kind.Kind() {
	case reflect.Pointer:
		return typeWords(kind.Elem())
	case reflect.Slice, reflect.Array:
		return "list of " + typeWords(kind.Elem())
	case reflect.Map:
		return "object of " + typeWords(kind.Elem())
	case reflect.Struct:
		return kind.Name()
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "string"
	case reflect.Interface:
		return "any"
	}
	return "number"
}

// commentsOf returns the comments of a struct's fields.
func (p *fieldsPage) commentsOf(kind reflect.Type) map[string]string {
	name := kind.PkgPath() + "." + kind.Name()
	if _, done := p.comments[name]; done {
		return p.comments[name]
	}
	_, dir, _ := strings.Cut(kind.PkgPath(), "/sparseserve/sparseserve/")
	paths, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
	if err != nil || len(paths) == 0 {
		p.t.Fatalf("%s: no sources (%v)", kind, err)
	}
	p.comments[name] = map[string]string{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			p.t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != kind.Name() {
				return true
			}
			if of, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range of.Fields.List {
					for _, field := range f.Names {
						p.comments[name][field.Name] = strings.ReplaceAll(strings.Join(strings.Fields(
							f.Doc.Text()+" "+f.Comment.Text()), " "), "|", "or")
					}
				}
			}
			return false
		})
	}
	return p.comments[name]
}
