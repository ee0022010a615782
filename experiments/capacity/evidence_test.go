package capacity

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// Every figure of evidence.toml is in the document that it is from.
func TestEvidenceIsInTheDocuments(t *testing.T) {
	e, err := loadEvidence()
	if err != nil {
		t.Fatal(err)
	}
	var documents strings.Builder
	for _, path := range []string{"../../README.md", "../../docs/evidence.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		documents.Write(text)
	}
	for _, c := range e.Class {
		if len(c.Quotes) == 0 {
			t.Errorf("%s quotes nothing", c.Name)
		}
		for _, quote := range c.Quotes {
			if !strings.Contains(documents.String(), quote) {
				t.Errorf("%s: no document has %q: bring evidence.toml up to date", c.Name, quote)
			}
		}
	}
}

// Published shares of accuracy equal the published table.
func TestPublishedAccuracy(t *testing.T) {
	e, err := loadEvidence()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open("../papers/tableA1.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	type budget struct{ model, tokens string }
	sparse, full := map[budget]float64{}, map[budget]float64{} // sums over sets
	for _, row := range rows[1:] {                             // model,dataset,full,budget,accuracy
		of := budget{row[0], row[3]}
		sparse[of] += number(t, row[4])
		full[of] += number(t, row[2])
	}
	shares := 0
	for _, a := range e.Accuracy {
		for tokens, share := range a.Budgets {
			shares++
			of := budget{a.Column, tokens}
			if got := sparse[of] / full[of]; !(math.Abs(got-share) <= 0.0005) {
				t.Errorf("%s, %s tokens: %g, the table has %.4f", a.Model, tokens, share, got)
			}
		}
	}
	if shares != len(full) {
		t.Errorf("%d budgets of models, the table has %d", shares, len(full))
	}
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestEvidenceOf(t *testing.T) {
	for _, c := range []struct {
		sets            []string
		class, accuracy string
	}{
		{[]string{"gpu=h100-80gb", "system.preset=vllm-0.15"}, "vLLM 0.15 on an H100",
			"full attention: the model's own"},
		{[]string{"gpu=h100-80gb", "system.preset=vllm-0.15", "system.tensor_parallel=2"},
			"vLLM 0.15 on several H100s", ""},
		{[]string{"gpu=h100-80gb", "system.preset=vllm-0.15", "card.hbm_bandwidth=5000"},
			"vLLM 0.15 on a card without a measured server", ""},
		{[]string{"gpu=a100-80gb", "system.preset=vllm-0.15"},
			"vLLM 0.15 on a card without a measured server", ""},
		{[]string{"gpu=h200", "system.preset=sparseserve", "system.engine=sparseserve-live"},
			"this project's server on an H200",
			"decode: 100.2 % of full attention's LongBench score with 2048 tokens (SparseServe, table A.1)"},
		{[]string{"gpu=a100-40gb", "system.preset=sparseserve", "selection.budget_tokens=768"},
			"sparse attention or offloading in a serving engine",
			"decode: not published for 768 tokens; table A.1 of SparseServe has 512, 1024, 1536, 2048"},
		{[]string{"gpu=a100-40gb", "system.preset=sparseserve-minference", "selection.policy=quest"}, "",
			"prefill: sparseserve list prefills minference has what is published; decode: not published " +
				"for lwm-7b with selection quest"},
		{[]string{"gpu=a100-40gb", "system.preset=vllm", "system.engine=vllm-0.5"},
			"the papers' engine, dense", ""},
	} {
		cfg, err := config.Load("", c.sets)
		if err != nil {
			t.Fatal(err)
		}
		e, err := evidenceOf(&cfg[0])
		if err != nil || c.class != "" && e.Class != c.class ||
			c.accuracy != "" && e.Accuracy != c.accuracy ||
			e.Weakest == "" ||
			e.Source == "" {
			t.Errorf("%q: %+v, %v; want %q and %q", c.sets, e, err, c.class, c.accuracy)
		}
	}
}
