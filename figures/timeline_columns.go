package figures

import "strings"

// busyColumn says how a column of seconds busy in a step is named: GPU, h2d, d2h.
func busyColumn(column string) (name string, ok bool) {
	if name, ok = strings.CutSuffix(column, "_busy_s"); name == "gpu" {
		name = "GPU"
	}
	return name, ok
}

// tierOf is the tier of KV below HBM that a column is about, "" where it is about none.
func tierOf(column string) string {
	if strings.Contains(column, "ssd") {
		return "ssd"
	}
	for _, of := range []string{"dram_", "h2d_", "d2h_", "prefix_loaded_", "prefix_saved_"} {
		if strings.HasPrefix(column, of) {
			return "dram"
		}
	}
	return ""
}

// tiersUsed are the tiers that some column of which is not zero in some row. What a tier that is
// not there does is no line at zero.
func tiersUsed(t *table) map[string]bool {
	used := map[string]bool{}
	for _, name := range t.header {
		tier := tierOf(name)
		for row := 0; tier != "" && !used[tier] && row < len(t.rows); row++ {
			used[tier] = t.number(row, name) != 0
		}
	}
	return used
}

// memoryColumn says how a column of memory or link use is drawn: its panel, its name, the
// unit, and what a value is multiplied with. Other columns have no panel.
func memoryColumn(column string) (panel, name, unit string, scale float64) {
	where, rest, _ := strings.Cut(column, "_")
	if tier, ok := strings.CutSuffix(rest, "_bytes"); ok && where == "prefix" {
		words := strings.ReplaceAll(strings.ReplaceAll(tier, "ssd", "SSD"), "_", " ")
		return "Cached prefixes moved", words, "GB/s", 1e-9
	}
	panel, ok := map[string]string{
		"hbm": "HBM", "dram": "DRAM", "kv": "KV cache", "link": "Link", "h2d": "Link", "d2h": "Link",
		"pcie": "Link",
	}[where]
	if !ok {
		return "", "", "", 0
	}
	scale = 1
	for _, u := range []struct {
		suffix, unit string
		scale        float64
	}{
		{"bytes", "GiB", 1.0 / (1 << 30)}, {"gib", "GiB", 1}, {"mib", "GiB", 1.0 / 1024},
		{"gb_s", "GB/s", 1},
		{"share", "Share (%)", 100}, {"use", "Share (%)", 100}, {"blocks", "Blocks", 1},
		{"tokens", "Tokens", 1},
	} {
		if words, ok := strings.CutSuffix(rest, u.suffix); ok {
			rest, unit, scale = strings.TrimSuffix(words, "_"), u.unit, u.scale
			break
		}
	}
	name = panel
	if panel == "Link" {
		name = where
		if unit == "GiB" { // of a step
			unit, scale = "GB/s", scale*(1<<30)/1e9
		}
	}
	if rest != "" {
		name += " " + strings.ReplaceAll(strings.ReplaceAll(rest, "_", " "), "kv", "KV")
	}
	return panel, name, unit, scale
}
