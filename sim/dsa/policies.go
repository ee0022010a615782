package dsa

import (
	"fmt"
	"math"
)

// FullName names full attention as an algorithm. A server that runs it needs no scores and no
// lists.
const FullName = "full"

// IndexerName names the selection of an indexer; only models with an indexer have it.
const IndexerName = "indexer"

// PSAName names progressive attention, InfiniGenName the selection of tokens by a margin.
const (
	PSAName       = "psa"
	InfiniGenName = "infinigen"
)

// everyBlock is the K of full attention.
const everyBlock = math.MaxInt - 1

// Options are the configuration values of selection.
type Options struct {
	Blocks     int     // candidates of a fixed budget without sinks and window
	Epsilon    float64 // threshold of accumulated attention
	Microbatch int     // blocks of one progressive iteration
	Pipelined  bool    // load the next iteration's blocks during an iteration's attention
	HeadStops  bool    // each KV head stops by itself, instead of all heads of a layer together
	Margin     float64 // below the highest score, q·k / sqrt(d)
	Queries    int     // query heads of a KV head if each selects for itself; else 1
}

// Digest is the block metadata from which criticality is estimated.
type Digest string

const (
	// ArkVale: centre and mean spread of the keys in each dimension
	CuboidMean     Digest = "cuboid-mean"
	MinMax         Digest = "min-max"        // Quest: bounds of the keys in each dimension
	Mean           Digest = "mean"           // mean key
	Representative Digest = "representative" // InfLLM: a few of the keys
	Speculated     Digest = "speculated"     // InfiniGen: each key, with the previous layer's query
	Indexed        Digest = "indexed"        // DSA: a small key of each token, trained to rank them
)

// Algorithm is a selection algorithm that a configuration can name.
type Algorithm struct {
	Name   string
	What   string // one line
	Digest Digest
	Fixed  bool // attends to selection.budget_tokens, whatever the scores
	Tokens bool // selects tokens: a block must hold one
	Make   func(*Options) Policy
}

// Algorithms are the selection algorithms. To add one, add a file and an entry here.
var Algorithms = []Algorithm{
	{FullName, "every block: full attention", "", false, false,
		func(*Options) Policy { return TopK{K: everyBlock} }},
	{"arkvale", "top-k by cuboid-mean digests", CuboidMean, true, false, topKOf},
	{"quest", "top-k by min/max digests", MinMax, true, false, topKOf},
	{"mean", "top-k by mean keys", Mean, true, false, topKOf},
	{"infllm", "top-k by representative tokens", Representative, true, false, topKOf},
	{IndexerName, "top-k of tokens by a lightning indexer (DSA)", Indexed, true, false, topKOf},
	{"streaming", "sinks and window alone", CuboidMean, false, false,
		func(*Options) Policy { return TopK{} }},
	{PSAName, "progressively, until selection.epsilon of the attention is reached", CuboidMean, false,
		false, func(o *Options) Policy {
			p := PSA{Epsilon: o.Epsilon, Microbatch: o.Microbatch}
			if o.Pipelined {
				p.Ahead = 1
			}
			if o.HeadStops {
				return p
			}
			return PSALayer{p}
		}},
	{InfiniGenName, "tokens within selection.margin of the highest speculated score", Speculated,
		false, true, func(o *Options) Policy {
			return InfiniGen{Margin: o.Margin, Most: 0.2}
		}},
}

func topKOf(o *Options) Policy {
	if o.Queries > 1 {
		return Union{K: o.Blocks, Queries: o.Queries}
	}
	return TopK{K: o.Blocks}
}

// Names returns the names of all algorithms.
func Names() []string {
	names := make([]string, len(Algorithms))
	for i := range Algorithms {
		names[i] = Algorithms[i].Name
	}
	return names
}

// AlgorithmNamed returns the algorithm with the given name, or an error if there is none.
func AlgorithmNamed(name string) (*Algorithm, error) {
	for i := range Algorithms {
		if Algorithms[i].Name == name {
			return &Algorithms[i], nil
		}
	}
	return nil, fmt.Errorf("dsa: no selection algorithm %q", name)
}
