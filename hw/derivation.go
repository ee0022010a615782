package hw

import (
	"github.com/sparseserve/sparseserve/internal/warn"
)

// Derivation says how far a card is from the one on which its kernels were measured; empty: it is
// the same chip.
type Derivation string

// derivations maps each Derivation to the error that deriving had where it could be checked: the
// largest medians of docs/cost-model.md, which a test compares, and published ratios of an MI300X
// to an H200 under vLLM 0.26 (alpharomercoma/MI300X-vs-H200, REPORT.md, commit 6077fdc7) over those
// of peak (1.32) and HBM (1.10): prompts 2.06 x 1.32, experts 2.72 x 1.10, decodes 1.02 x 1.10.
var derivations = map[Derivation]string{
	"generation": "of the same generation: the median error of a kernel, where it could be checked " +
		"(H100 from H200), is up to 10 % in 16 bits and 40 % in FP8",
	"generations": "of another generation: the median error of a kernel, where it could be checked " +
		"(B200 from H200, L40S from A100), is up to 50 % in 16 bits and 500 % in FP8",
	"architecture": "of another architecture: where it could be checked (MI300X from H200), decodes " +
		"took 1.1 times as long as derived, prompts up to 2.7 times, experts up to 3 times",
}

// Doubts returns a warning if the kernels of an engine were measured on another chip than the card
// that gpu names. Both are names or files of which Load made a machine.
func Doubts(gpu, engine string) []warn.Warning {
	c, err := LoadCard(gpu)
	e, err2 := LoadEngine(engine)
	if err != nil || err2 != nil || c.Derived == "" {
		return nil
	}
	k, derived, err := c.KernelsOf(e.Kernels, gpu)
	if err != nil || !derived {
		return nil
	}
	return []warn.Warning{warn.New(warn.DerivedCard, "kernels of %s are derived, not measured: from "+
		"%s, %s", c.Name, k.MeasuredOn, derivations[c.Derived]).About(c.Name)}
}
