package config

import (
	"context"
	"fmt"
	"path"
	"strings"
)

// SweepPoint is one run of a sweep.
type SweepPoint struct {
	Point
	Label    string    // Point.Name and what else the axes set
	Settings []Setting // by the axes
	Hash     string    // names the point's folder
}

// Points expands the sweep: by the axes, then system, rate and seed. Two points with the same
// configuration are an error.
func (s *Sweep) Points(ctx context.Context) ([]SweepPoint, error) {
	var points []SweepPoint
	seen := map[string]*Variant{}
	hashes := NewHasher()
	for i := range s.Variants {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v := &s.Variants[i]
		for _, p := range s.points(v) {
			hash, err := hashes.Hash(&p)
			if err != nil {
				return nil, err
			}
			if other := seen[hash]; other != nil {
				return nil, fmt.Errorf("%s: %s runs twice: with %s and with %s", v.where(s.file),
					p.Name, other.text(), v.text())
			}
			seen[hash] = v
			points = append(points, SweepPoint{p, p.Name + SettingsLabel(v.Settings), v.Settings, hash})
		}
	}
	return points, nil
}

// Source returns the name of the sweep's file or built-in experiment.
func (s *Sweep) Source() string { return s.file.name }

// points expands one variant.
func (s *Sweep) points(v *Variant) []Point {
	points := v.Config.Points()
	if s.Alter != nil {
		for i := range points {
			s.Alter(&points[i])
		}
	}
	return points
}

// text formats the axis settings of the variant.
func (v *Variant) text() string {
	texts := make([]string, len(v.Settings))
	for i, s := range v.Settings {
		texts[i] = s.Key + " = " + Show(s.Value)
	}
	return strings.Join(texts, ", ")
}

// where returns the place of the last of the variant's settings.
func (v *Variant) where(file *document) string {
	if n := len(v.Settings); n > 0 && v.Settings[n-1].where != "" {
		return v.Settings[n-1].where
	}
	return file.name
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
