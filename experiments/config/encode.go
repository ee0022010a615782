package config

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/fleet"
	"github.com/sparseserve/sparseserve/traces"
)

// TOML writes the configuration with every key spelled out, each system as a
// [[systems]] table. Loading the text gives the same runs.
func (c *Config) TOML() ([]byte, error) { return c.encode(nil) }

// encode is TOML with a memo that many configurations share.
func (c *Config) encode(memo map[any][]byte) ([]byte, error) {
	e := encoder{memo: memo}
	e.line("model", c.Model)
	e.line("gpu", c.GPU)
	e.line("seed", listed(&c.Seeds).Interface())
	e.cardTable(c.Card)
	table := ""
	for _, f := range FieldsOf(&c.Workload) {
		value := f.Value
		key := wholeKey("workload", f.Key)
		if list := c.lists()[key]; list != nil {
			value = listed(list)
		}
		spelled := c.Workload.Trace == traces.Sessions && slices.Contains(traces.SessionKeys, key)
		if strings.HasSuffix(f.Tag.Get("toml"), ",omitempty") && value.IsZero() && !spelled {
			continue
		}
		of, name, _ := strings.Cut(key, ".")
		if of != table {
			table = of
			e.printf("\n[%s]\n", table)
		}
		e.line(name, value.Interface())
	}
	e.fleetTable(c)
	e.table("scores", &c.Scores)
	e.table("slo", &c.SLO)
	e.table("metrics", &c.Metrics)
	e.table("output", &c.Output)
	for i := range c.Systems {
		e.printf("\n")
		e.system(&c.Systems[i])
	}
	return e.out.Bytes(), e.err
}

// fleetTable writes the fleet settings; nothing for one server.
func (e *encoder) fleetTable(c *Config) {
	if !slices.ContainsFunc(c.fleets(), func(f fleet.Spec) bool { return f.On() }) {
		return
	}
	e.printf("\n[fleet]\n")
	for _, f := range FieldsOf(&c.Fleet) {
		value := f.Value
		if f.Key == "replicas" {
			value = listed(&c.Replicas)
		}
		if value.Kind() != reflect.Slice || value.Len() > 0 {
			e.line(f.Key, value.Interface())
		}
	}
}

// listed returns the value of a key whose list expands into runs.
func listed(list any) reflect.Value {
	v := reflect.ValueOf(list).Elem()
	if v.Len() == 1 {
		return v.Index(0)
	}
	return v
}

// encoder writes TOML with keys in the order of their structs and keeps the
// first error.
type encoder struct {
	out  bytes.Buffer
	err  error
	memo map[any][]byte // text of tables and lines by their values; nil to keep none
}

func (e *encoder) printf(format string, args ...any) { fmt.Fprintf(&e.out, format, args...) }

func (e *encoder) table(name string, v any) {
	e.printf("\n[%s]\n", name)
	e.fields(v)
}

func (e *encoder) fields(v any) {
	value := reflect.ValueOf(v).Elem()
	e.marshal("", value.Interface(), value.Interface())
}

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
