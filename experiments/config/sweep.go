package config

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"
)

// Points lists the runs, each with its hash. Two runs with the same configuration are an error.
func (s *Sweep) Points(ctx context.Context) (points []Point, err error) {
	seen := map[string]*Point{}
	hashes := NewHasher()
	for _, p := range s.Runs() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if p.Hash, err = hashes.Hash(p); err != nil {
			return nil, err
		}
		if other := seen[p.Hash]; other != nil {
			where := s.file.name
			if n := len(p.Settings); n > 0 {
				where = cmp.Or(p.Settings[n-1].where, where)
			}
			return nil, fmt.Errorf("%s: %s runs twice: with %s and with %s", where, p.Name,
				settingsText(other.Settings), settingsText(p.Settings))
		}
		seen[p.Hash] = p
		points = append(points, *p)
	}
	return points, nil
}

// Runs lists the runs of all variants.
func (s *Sweep) Runs() []*Point { return pointers(s.Variants...) }

func pointers(variants ...[]Point) (all []*Point) {
	for _, runs := range variants {
		for i := range runs {
			all = append(all, &runs[i])
		}
	}
	return all
}

// Source returns the name of the sweep's file or built-in experiment.
func (s *Sweep) Source() string { return s.file.name }

func settingsText(settings []Setting) string {
	texts := make([]string, len(settings))
	for i, s := range settings {
		texts[i] = s.Key + " = " + Show(s.Value)
	}
	return strings.Join(texts, ", ")
}

// SettingsLabel lists the settings that are not part of a point's name.
func SettingsLabel(settings []Setting) string {
	var b strings.Builder
	for _, s := range settings {
		switch s.Key {
		case "system.preset", "workload.rate", "workload.concurrency", "fleet.replicas", "seed":
			continue
		}
		value := Show(s.Value)
		if text, ok := s.Value.(string); ok {
			value = path.Base(text)
		}
		fmt.Fprintf(&b, " %s=%s", KeyName(s.Key), value)
	}
	return b.String()
}

// SettingsMap returns the settings by key.
func SettingsMap(settings []Setting) map[string]any {
	m := map[string]any{}
	for _, s := range settings {
		m[s.Key] = s.Value
	}
	return m
}

// KeyName returns the short name of a key for tables and legends: its last part, as budget_tokens
// for selection.budget_tokens; the table of a switch, as offload for offload.on; or the whole key
// if its last part is ambiguous, as for offload.eviction.
func KeyName(key string) string {
	table, name, nested := strings.Cut(key, ".")
	if !nested {
		return key
	}
	switch {
	case key == "sessions.count":
		return table
	case table == "estimates":
		return key
	}
	switch table {
	case "selection", "offload", "prefill", "prefix_cache", "speculation", "simulation":
	default:
		return key[strings.LastIndexByte(key, '.')+1:]
	}
	switch {
	case name == "on" || name == "mode":
		return table
	case table == "prefix_cache" || !strings.Contains(name, "_"):
		return key
	}
	return name
}
