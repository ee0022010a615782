package figures

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Run is what the figures need of one run's summary. Times are in seconds.
type Run struct {
	System         string   `json:"system"`
	Model          string   `json:"model"`
	GPU            string   `json:"gpu"`
	Rate           float64  `json:"rate"` // requests/s
	TTFT           mean     `json:"ttft_s"`
	TBT            mean     `json:"tbt_s"`
	ThroughputTokS float64  `json:"throughput_tok_s"`
	Completed      int      `json:"completed"`
	Warnings       []string `json:"warnings"`
}

type mean struct {
	Mean float64 `json:"mean"`
}

// Read returns the runs of a result folder.
func Read(dir string) ([]Run, error) {
	path := filepath.Join(dir, "summary.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var runs []Run
	if err := json.Unmarshal(text, &runs); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return runs, nil
}
