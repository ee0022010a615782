package aic

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/files"
)

// nominal holds a machine's figures from AIConfigurator's systems folder, in SI units.
type nominal struct {
	GPU struct {
		HBMBandwidth float64 `yaml:"mem_bw"`
		HBMSize      float64 `yaml:"mem_capacity"`
		BF16         float64 `yaml:"bfloat16_tc_flops"`
		FP8          float64 `yaml:"fp8_tc_flops"`
		FP4          float64 `yaml:"fp4_tc_flops"`
		SM           int     `yaml:"sm_version"`
	} `yaml:"gpu"`
	Node struct {
		Links float64 `yaml:"intra_node_bw"`
		PCIe  float64 `yaml:"pcie_bw"`
	} `yaml:"node"`
}

// nominalCard makes a card from nominal figures. Figures that the file lacks (link efficiency, L2,
// host) come from the measured card of the base kernels.
func nominalCard(path, name string) (*hw.Card, string, error) {
	text, err := files.ReadText(path)
	if err != nil {
		return nil, "", fmt.Errorf("nominal figures: %w; give --card, a built-in card or a card's "+
			"file", err)
	}
	var n nominal
	if err := yaml.Unmarshal(text, &n); err != nil {
		return nil, "", fmt.Errorf("nominal figures: %s: %w", path, err)
	}
	for _, f := range []struct {
		key string
		of  float64
	}{{"gpu.mem_bw", n.GPU.HBMBandwidth}, {"gpu.mem_capacity", n.GPU.HBMSize},
		{"gpu.bfloat16_tc_flops", n.GPU.BF16}, {"node.pcie_bw", n.Node.PCIe},
		{"node.intra_node_bw", n.Node.Links}, {"gpu.sm_version", float64(n.GPU.SM)}} {
		if !(f.of > 0) {
			return nil, "", fmt.Errorf("nominal figures: %s: %s: want a number above 0, got %v", path, f.key,
				f.of)
		}
	}
	base, like := "hopper-fa3", "h200"
	if n.GPU.SM < 90 {
		base, like = "ampere-fa2", "a100-80gb"
	}
	measured, err := hw.LoadCard(like)
	if err != nil {
		return nil, "", err
	}
	return n.card(name, path, measured, base), base, nil
}

func (n *nominal) card(name, path string, like *hw.Card, base string) *hw.Card {
	published := func(v float64, unit string, scale float64) hw.Figure {
		return hw.Figure{Value: round(v / scale), Unit: unit, From: hw.Published, Source: path}
	}
	c := *like
	c.Name, c.Title = name, name+" by nominal figures"
	c.Kernels.FA3 = name + "-kernels.toml"
	c.GPU.PeakFP16 = published(n.GPU.BF16, "TFLOP/s", 1e12)
	c.GPU.PeakFP8, c.GPU.PeakFP4 = hw.Figure{}, hw.Figure{}
	if n.GPU.FP8 > 0 {
		c.GPU.PeakFP8 = published(n.GPU.FP8, "TFLOP/s", 1e12)
	}
	if n.GPU.FP4 > 0 {
		c.GPU.PeakFP4 = published(n.GPU.FP4, "TFLOP/s", 1e12)
	}
	c.GPU.HBMBandwidth = published(n.GPU.HBMBandwidth, "GB/s", 1e9)
	c.GPU.HBMSize = published(n.GPU.HBMSize, "GiB", 1<<30)
	c.GPU.L2Size.From, c.GPU.L2Size.Source = hw.Derived, "as "+like.Name
	by := n.Node.PCIe / like.Link.Nominal.SI()
	for _, f := range []*hw.Figure{&c.Link.H2D, &c.Link.D2H, &c.Link.DuplexCopy,
		&c.Link.DuplexKernel} {
		f.Value, f.From = round(f.Value*by), hw.Derived
		f.Source = "the share of the link's nominal rate that " + like.Name + " reaches"
	}
	c.Link.Nominal = published(n.Node.PCIe, "GB/s", 1e9)
	c.Interconnect = hw.Interconnect{Nominal: published(n.Node.Links, "GB/s", 1e9)}
	return &c
}
