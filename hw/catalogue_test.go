package hw

import (
	"encoding/csv"
	"math"
	"strconv"
	"strings"
	"testing"
)

// The catalogue's shapes give the published numbers of parameters and bytes of KV per token, and
// each row is found by its name and by its id.
func TestCatalogue(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(catalogueCSV)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	kv := map[string]int64{"llama3.3-70b": 327_680, "llama3.1-405b": 516_096, "qwen3-32b": 262_144,
		"qwen2.5-7b": 57_344, "qwen2.5-72b": 327_680, "phi4": 204_800, "mixtral-8x22b": 229_376,
		"deepseek-r1": 70_272, "gemma3-27b": 507_904, "mistral-nemo-12b": 163_840}
	for i, m := range Catalogue() {
		row := rows[1+i]
		billions, err := strconv.ParseFloat(row[len(row)-1], 64)
		if err != nil {
			t.Fatalf("%s: %v", row[0], err)
		}
		if n := float64(m.Parameters()) / 1e9; math.Abs(n/billions-1) > 0.01 {
			t.Errorf("%s: %.4g billion parameters, published are %g", m.Name, n, billions)
		}
		if want, ok := kv[m.Name]; ok && m.KVBytesPerToken() != want {
			t.Errorf("%s: %d bytes of KV per token, want %d", m.Name, m.KVBytesPerToken(), want)
		}
		delete(kv, m.Name)
		for _, name := range row[:2] {
			if got, err := LoadModel(name); err != nil || got.Name != m.Name {
				t.Errorf("%s: %s, %v, want %s", name, got.Name, err, m.Name)
			}
		}
	}
	if len(kv) > 0 {
		t.Errorf("not in the catalogue: %v", kv)
	}
}
