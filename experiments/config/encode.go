package config

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/traces"
)

// TOML writes the configuration of runs that differ in systems and listed keys alone, with every
// key spelled out, each system as a [[systems]] table. Loading the text gives the same runs.
func TOML(runs []Point) ([]byte, error) { return encode(nil, runs...) }

// encode is TOML with a memo that many configurations share.
func encode(memo map[any][]byte, runs ...Point) ([]byte, error) {
	e := encoder{memo: memo}
	p := &runs[0]
	fleets := slices.ContainsFunc(runs, func(p Point) bool { return p.Fleet.On() })
	table := ""
	for _, f := range FieldsOf(p) {
		of, name, nested := strings.Cut(f.Key, ".")
		spelled := p.Workload.Trace == traces.Sessions && slices.Contains(traces.SessionKeys, f.Key)
		value := runValues(runs, f)
		empty := value.IsZero() || value.Kind() == reflect.Slice && value.Len() == 0
		if OfSystem(f.Key) || of == "fleet" && !fleets ||
			empty && !spelled && strings.HasSuffix(f.Tag.Get("toml"), ",omitempty") {
			continue
		}
		if nested && table == "" {
			e.cardTable(p.Card)
		}
		if nested && of != table {
			table = of
			e.printf("\n[%s]\n", table)
		}
		e.line(cmp.Or(name, of), value.Interface())
	}
	var systems []string
	for i := range runs {
		if s := &runs[i].System; !slices.Contains(systems, s.Name) {
			systems = append(systems, s.Name)
			e.printf("\n")
			e.system(s)
		}
	}
	return e.out.Bytes(), e.err
}

// runValues returns the value of a key of runs, or the list of their values.
func runValues(runs []Point, f Field) reflect.Value {
	if len(runs) == 1 || !slices.Contains(listed, f.Key) {
		return f.Value
	}
	list := reflect.MakeSlice(reflect.SliceOf(f.Value.Type()), 0, len(runs))
	seen := map[any]bool{}
	for i := range runs {
		v, _ := runs[i].Field(f.Key)
		if !seen[v.Interface()] {
			seen[v.Interface()] = true
			list = reflect.Append(list, v)
		}
	}
	if list.Len() == 1 {
		return f.Value
	}
	return list
}

// encoder writes TOML with keys in the order of their structs and keeps the
// first error.
type encoder struct {
	out  bytes.Buffer
	err  error
	memo map[any][]byte // text of tables and lines by their values; nil to keep none
}

func (e *encoder) printf(format string, args ...any) { fmt.Fprintf(&e.out, format, args...) }

// system writes a [[systems]] table and the tables of its parts.
func (e *encoder) system(s *sim.Spec) {
	e.marshal("systems", *s, map[string]any{"systems": []sim.Spec{*s}})
}

func (e *encoder) line(key string, value any) {
	e.marshal(key, [2]any{key, value}, map[string]any{key: value})
}

// marshal writes v. name identifies v in the memo.
func (e *encoder) marshal(key string, name, v any) {
	kept := e.memo != nil && reflect.ValueOf(name).Comparable()
	if text, ok := []byte(nil), false; kept {
		if text, ok = e.memo[name]; ok {
			e.out.Write(text)
			return
		}
	}
	var b bytes.Buffer
	to := toml.NewEncoder(&b)
	to.Indent = ""
	err := to.Encode(v)
	text := bytes.ReplaceAll(b.Bytes(), []byte("\n["), []byte("\n\n[")) // tables stand apart
	text = bytes.ReplaceAll(text, []byte("\n\n\n["), []byte("\n\n["))
	if kept {
		e.memo[name] = text
	}
	if err != nil && e.err == nil {
		e.err = fmt.Errorf("%s: %w", key, err)
	}
	e.out.Write(text)
}
