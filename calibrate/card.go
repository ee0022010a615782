package calibrate

import (
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// source is the origin of measured figures.
type source struct{ text string }

// figureDigits is the number of significant digits of a fitted figure.
const figureDigits = 4

func (s source) figure(value float64, unit, what string) hw.Figure {
	return hw.Figure{Value: stats.Significant(value, figureDigits), Unit: unit, From: hw.Measured,
		Source: what + "; " + s.text}
}

func (s source) us(seconds float64, what string) hw.Figure {
	return s.figure(seconds*1e6, "us", what)
}

func (s source) gbps(bytesPerSecond float64, what string) hw.Figure {
	return s.figure(bytesPerSecond*1e-9, "GB/s", what)
}

// liveEngine is the measured engine: this project's live loop.
const liveEngine = "sparseserve-live"

// cards are built-in profiles by the driver's name of the card.
var cards = []struct {
	profile string
	words   []string // all in the driver's name
}{
	{"h200", []string{"H200"}},
	{"h100-80gb", []string{"H100", "HBM3"}},
	{"a100-40gb", []string{"A100", "40GB"}},
	{"a100-80gb", []string{"A100", "80GB"}},
}

// baseProfile returns the built-in profile for figures that are not measured: the card's own if
// there is one (known), otherwise the most similar card's.
func baseProfile(card string) (p *hw.Profile, known bool, err error) {
	for _, c := range cards {
		has := true
		for _, w := range c.words {
			has = has && strings.Contains(card, w)
		}
		if has {
			p, err = hw.Load(c.profile, liveEngine, nil)
			return p, true, err
		}
	}
	p, err = hw.Load("a100-80gb", liveEngine, nil)
	return p, false, err
}

// strangeCard replaces figures that hold only for the base's card: peaks, which bound predictions,
// are set above the measured rates.
func strangeCard(s *Samples, p *hw.Profile) {
	base := p.Name
	p.Name = cardName(s.Origin.Card)
	p.Title = s.Origin.Card
	derive := func(value float64, unit, why string) hw.Figure {
		return hw.Figure{Value: stats.Significant(value, figureDigits), Unit: unit, From: hw.Derived,
			Source: why}
	}
	read, computed := 0.0, 0.0
	for _, at := range s.of(probeDense) {
		read = max(read, kvBytes("context_tokens")(at)/at.seconds)
	}
	for _, at := range s.of(probeLinears) {
		computed = max(computed, 2*tokens(at)*float64(at.model.LayerLinears())/at.seconds)
	}
	p.GPU.HBMBandwidth = derive(read/0.9*1e-9, "GB/s",
		"the fastest measured decode attention over 0.9")
	p.GPU.PeakFP16 = derive(computed/0.8*1e-12, "TFLOP/s", "the fastest measured linears over 0.8")
	link := 0.0
	for _, at := range s.of(probeH2D, probeD2H) {
		link = max(link, float64(at.At("bytes"))/at.seconds)
	}
	for _, nominal := range []float64{8e9, 16e9, 32e9, 64e9, 128e9, 450e9, 900e9} {
		if nominal > link {
			p.Link.Nominal = derive(nominal*1e-9, "GB/s",
				"the least PCIe x16 or NVLink-C2C speed above the measured copies")
			break
		}
	}
	for _, f := range []*hw.Figure{&p.GPU.Runtime, &p.Host.Step} {
		f.From, f.Source = hw.Derived, fmt.Sprintf("not measured; as %s: %s", base, f.Source)
	}
}

// cardName converts the driver's name to a profile's name: "NVIDIA L40S" -> "l40s".
func cardName(card string) string {
	card = strings.TrimPrefix(strings.ToLower(oneLine(card)), "nvidia ")
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, card)
	if clean = strings.Trim(clean, "-"); clean == "" {
		return "gpu"
	}
	return clean
}
