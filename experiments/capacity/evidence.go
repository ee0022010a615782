package capacity

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/sim"
)

//go:embed evidence.toml
var evidenceText string

// evidence is what predictions were held against.
type evidence struct {
	Class    []class
	Accuracy []accuracy
}

// class is a class of predictions. Empty lists fit everything.
type class struct {
	Name     string
	Engines  []string
	GPUs     []string
	Parallel bool // fits tensor parallelism alone, as its absence fits one GPU where GPUs are named
	Dense    bool // fits full attention without offloading alone
	Measured string
	Source   string
	Quotes   []string
	Weakest  string
	// Error is the largest measured relative error per bound name and statistic, as in tbt_p99. Late
	// is an additional constant error in seconds.
	Error, Late map[string]float64
}

// accuracy is the published accuracy of a model with SparseServe's selection.
type accuracy struct {
	Model, Column string
	Budgets       map[string]float64 // of KV tokens: score over that of full attention
}

// Evidence describes how well measurements support a prediction.
type Evidence struct {
	Class    string `json:"class"`
	Measured string `json:"measured_error"` // of such predictions; empty: none
	Source   string `json:"source"`
	Weakest  string `json:"weakest_assumption"`
	Accuracy string `json:"accuracy"` // of the model's answers, where it is published
}

func loadEvidence() (evidence, error) {
	var e evidence
	meta, err := toml.Decode(evidenceText, &e)
	if unknown := meta.Undecoded(); err == nil && len(unknown) > 0 {
		err = fmt.Errorf("evidence.toml: unknown key %s", unknown[0])
	}
	return e, err
}

// evidenceOf finds the class that a point belongs to.
func evidenceOf(p *config.Point) (Evidence, error) {
	c, all, err := classOf(p)
	return Evidence{c.Name, c.Measured, c.Source, c.Weakest, all.accuracyOf(p)}, err
}

// classOf finds the class that a point belongs to.
func classOf(p *config.Point) (c class, all evidence, err error) {
	if all, err = loadEvidence(); err != nil {
		return c, all, err
	}
	i := slices.IndexFunc(all.Class, func(c class) bool { return c.fits(p) })
	if i < 0 {
		return c, all, fmt.Errorf("evidence.toml: no class fits engine %s", p.System.Engine)
	}
	return all.Class[i], all, nil
}

func (c *class) fits(p *config.Point) bool {
	s := &p.System
	switch {
	case len(c.Engines) > 0 && !slices.Contains(c.Engines, s.Engine):
		return false
	case len(c.GPUs) > 0 && (!slices.Contains(c.GPUs, p.GPU) || len(p.Card) > 0):
		return false
	case c.Dense && !stock(s):
		return false
	}
	return len(c.GPUs) == 0 || c.Parallel == (s.TensorParallel > 1)
}

// stock reports whether a system serves as a stock engine does: full attention, all KV in HBM.
func stock(s *sim.Spec) bool {
	return !s.Sparse() && !s.Offload.On && !s.SparsePrefill()
}

// accuracyOf returns what is published about the accuracy of the answers relative to full
// attention.
func (e *evidence) accuracyOf(p *config.Point) string {
	s := &p.System
	var words []string
	if s.SparsePrefill() {
		words = append(words, fmt.Sprintf("prefill: sparseserve list prefills %s has what is published",
			s.Prefill.Attention))
	}
	if s.Sparse() {
		words = append(words, "decode: "+e.budget(p))
	}
	if len(words) == 0 {
		return "full attention: the model's own"
	}
	return strings.Join(words, "; ")
}

// budget returns the published accuracy for a budget of SparseServe's selection.
func (e *evidence) budget(p *config.Point) string {
	s := &p.System
	i := slices.IndexFunc(e.Accuracy, func(a accuracy) bool { return a.Model == p.Model })
	if i < 0 || s.Selection.Policy != "arkvale" {
		return fmt.Sprintf("not published for %s with selection %s", p.Model, s.Selection.Policy)
	}
	budgets := e.Accuracy[i].Budgets
	if share, ok := budgets[strconv.Itoa(s.Selection.BudgetTokens)]; ok {
		return fmt.Sprintf("%.1f %% of full attention's LongBench score with %d tokens (SparseServe, "+
			"table A.1)", 100*share, s.Selection.BudgetTokens)
	}
	return fmt.Sprintf("not published for %d tokens; table A.1 of SparseServe has %s",
		s.Selection.BudgetTokens, strings.Join(slices.SortedFunc(maps.Keys(budgets), byNumber), ", "))
}

// byNumber orders texts of whole numbers.
func byNumber(a, b string) int { return len(a)*10 - len(b)*10 + strings.Compare(a, b) }
