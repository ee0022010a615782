package hw

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw/builtin"
	"github.com/sparseserve/sparseserve/internal/nearest"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/internal/tomlfile"
)

//go:embed cards/*.toml
var cardFiles embed.FS

// Card describes a GPU and its host, independent of the software on them: a file of cards/ or a
// user's file.
type Card struct {
	Name    string      `toml:"name" want:"a name"`
	Title   string      `toml:"title"`
	Derived Derivation  `toml:"derived,omitempty" values:"architecture generation generations"`
	Kernels KernelFiles `toml:"kernels"`

	Chip
}

// Chip holds a card's figures.
type Chip struct {
	GPU  GPU  `toml:"gpu"`
	Link Link `toml:"link"`
	CPU  CPU  `toml:"cpu"`

	Interconnect Interconnect `toml:"interconnect,omitempty"`
}

// KernelFiles maps each library of kernels to the file of kernels/ with its costs on this card's
// architecture. A name that ends in .toml is a file in the card file's folder. Empty: the library
// does not run on the card.
type KernelFiles struct {
	Own string `toml:"sparseserve"`   // this project's, in the generation of FlashAttention-2
	FA2 string `toml:"fa2"`           // engines of that generation
	FA3 string `toml:"fa3,omitempty"` // engines with FlashAttention-3 where the card has it
}

// GPU holds the card's peaks. They bound every prediction.
type GPU struct {
	// peak FP16 rate of dense matrices
	PeakFP16 Figure `toml:"peak_fp16" dim:"compute"`
	// peak FP8 rate of dense matrices; not set: the tensor cores have no FP8
	PeakFP8 Figure `toml:"peak_fp8,omitempty" dim:"compute,optional"`
	// peak FP4 rate of dense matrices; not set: the tensor cores have no FP4
	PeakFP4 Figure `toml:"peak_fp4,omitempty" dim:"compute,optional"`
	// number of streaming multiprocessors, which run a kernel's CTAs
	SMs Figure `toml:"sms" dim:"count"`
	// peak HBM bandwidth
	HBMBandwidth Figure `toml:"hbm_bandwidth" dim:"rate"`
	// HBM that the driver reports
	HBMSize Figure `toml:"hbm_size" dim:"size"`
	// size of the L2 cache
	L2Size Figure `toml:"l2_size" dim:"size"`
	// HBM used by the CUDA context, libraries and workspaces
	Runtime Figure `toml:"runtime" dim:"size"`
}

// Link is the host link, with the rates of large copies.
type Link struct {
	// rate of the link by its standard, one direction
	Nominal Figure `toml:"nominal" dim:"rate"`
	// rate of large copies, host to device
	H2D Figure `toml:"h2d" dim:"rate"`
	// rate of large copies, device to host
	D2H Figure `toml:"d2h" dim:"rate"`
	// sum of both directions at once if copy engines move both
	DuplexCopy Figure `toml:"duplex_copy" dim:"rate"`
	// sum of both directions at once if a kernel moves one
	DuplexKernel Figure `toml:"duplex_kernel" dim:"rate"`
}

// CPU is the host's processor.
type CPU struct {
	// host cores; they limit the threads that scatter saved blocks
	Cores Figure `toml:"cores" dim:"cores"`
	// host speed relative to the host on which the engine was measured; 2 halves its times
	Speed Figure `toml:"speed" dim:"ratio"`
}

// CardNames returns the names of the built-in cards in alphabetical order.
func CardNames() []string { return builtin.Names(cardFiles, "cards") }

// shortCards are the cards that short names most often mean. nvidia-smi names a GH200 after its
// host's memory.
var shortCards = map[string]string{"a100": "a100-80gb", "h100": "h100-80gb",
	"h100sxm": "h100-80gb", "gh200": "gh200-96gb", "gh200480gb": "gh200-96gb", "4090": "rtx-4090",
	"5090": "rtx-5090", "910b": "ascend-910b", "910c": "ascend-910c"}

var (
	// vendorWords are the words of a card's name that tell no card from another.
	vendorWords = regexp.MustCompile(
		`(?i)(^|\b|_)(nvidia|amd|huawei|instinct|geforce|tesla|[hd]gx|sxm\d?|oam|hbm\d?e?)(\b|_|$)`)
	hbmSize = regexp.MustCompile(`(?i)(\d+) ?g(i?b)?\b`)
)

// CardName returns the built-in card that a name as people or nvidia-smi write it means (h100,
// NVIDIA H100 80GB HBM3), or the name.
func CardName(name string) string {
	if slices.Contains(CardNames(), name) || builtin.LooksLikePath(name) {
		return name
	}
	plain := vendorWords.ReplaceAllString(name, " ")
	if card := shortCards[builtin.Fold(plain)]; card != "" {
		return card
	}
	if card := builtin.Alike(plain, CardNames()); card != plain {
		return card
	}
	card, size := cardAndSize(plain)
	for _, known := range CardNames() {
		c, err := builtin.Load[Card]("gpu", cardFiles, "cards", known)
		if err != nil {
			panic("hw: built-in card " + known + ": " + err.Error())
		}
		byName, _ := cardAndSize(known)
		title, of := cardAndSize(vendorWords.ReplaceAllString(c.Title, " "))
		if (card == byName || card == title) && (size == "" || size == of) {
			return known
		}
	}
	return name
}

// cardAndSize parts a card's name from the size of its HBM in GB.
func cardAndSize(name string) (card, size string) {
	if at := hbmSize.FindStringSubmatch(name); at != nil {
		size = at[1]
	}
	return builtin.Fold(hbmSize.ReplaceAllString(name, "")), size
}

// KernelNames returns the names of the built-in kernels files in alphabetical order.
func KernelNames() []string { return builtin.Names(kernelFiles, "kernels") }

// LoadCard returns a built-in card by name, or reads a card file.
func LoadCard(nameOrPath string) (*Card, error) {
	return builtin.Load[Card]("gpu", cardFiles, "cards", CardName(nameOrPath))
}

func (c *Card) Validate() error {
	if c.Kernels.Own == "" || c.Kernels.FA2 == "" {
		return tomlfile.Wrong("kernels", "want a table [kernels] with sparseserve and fa2 (and fa3 for "+
			"engine vllm-0.15), each one of %s or a file in this folder", strings.Join(KernelNames(), ", "))
	}
	return cmp.Or(check(c), c.Link.validate())
}

// validate checks that no copy is faster than the standard of its link.
func (l *Link) validate() error {
	for _, f := range []struct {
		key, what  string
		of         Figure
		directions float64
	}{
		{"h2d", "nominal", l.H2D, 1}, {"d2h", "nominal", l.D2H, 1},
		{"duplex_copy", "twice nominal", l.DuplexCopy, 2},
		{"duplex_kernel", "twice nominal", l.DuplexKernel, 2},
	} {
		if most := f.directions * l.Nominal.SI(); f.of.Set() && f.of.SI() > most {
			return tomlfile.Wrong("link."+f.key, "no copy is faster than its link: got %v %s, %s is %.4g "+
				"GB/s", f.of.Value, f.of.Unit, f.what, most/1e9)
		}
	}
	return nil
}

// Changes are figures of a card set to other values, for what-if. Keys and units are in ChangeKeys.
type Changes map[string]float64

// changeable lists each key of Changes with its unit, its figure, and the features of a run that
// the key affects (ChangeUse).
var changeable = []struct {
	key, unit, used string
	figure          func(*Card) *Figure
}{
	{"peak_fp16", "TFLOP/s", "", func(c *Card) *Figure { return &c.GPU.PeakFP16 }},
	{"hbm_bandwidth", "GB/s", "", func(c *Card) *Figure { return &c.GPU.HBMBandwidth }},
	{"hbm_size", "GiB", "", func(c *Card) *Figure { return &c.GPU.HBMSize }},
	{"runtime", "GiB", "", func(c *Card) *Figure { return &c.GPU.Runtime }},
	{"link_nominal", "GB/s", "link_set", func(c *Card) *Figure { return &c.Link.Nominal }},
	{"link_h2d", "GB/s", "moves", func(c *Card) *Figure { return &c.Link.H2D }},
	{"link_d2h", "GB/s", "moves", func(c *Card) *Figure { return &c.Link.D2H }},
	{"link_duplex_copy", "GB/s", "moves", func(c *Card) *Figure { return &c.Link.DuplexCopy }},
	{"link_duplex_kernel", "GB/s", "kernel_copies",
		func(c *Card) *Figure { return &c.Link.DuplexKernel }},
	{"cpu_cores", "cores", "scatters", func(c *Card) *Figure { return &c.CPU.Cores }},
	{"cpu_speed", "x", "", func(c *Card) *Figure { return &c.CPU.Speed }},
}

// ChangeKeys lists the keys of Changes and their units.
func ChangeKeys() (keys, units []string) {
	for _, f := range changeable {
		keys, units = append(keys, f.key), append(units, f.unit)
	}
	return keys, units
}

// ChangeUse returns, separated by commas, the features that a run needs for a key of Changes to
// have an effect, as the tag `used` does for keys of the configuration; empty: none.
func ChangeUse(key string) string {
	for _, f := range changeable {
		if f.key == key {
			return f.used
		}
	}
	return ""
}

// Changeable returns the machine's figure for a key of Changes, in the key's unit. It panics for
// another key.
func (p *Profile) Changeable(key string) float64 {
	c := Card{Chip: p.Chip}
	for _, f := range changeable {
		if f.key != key {
			continue
		}
		figure := f.figure(&c)
		if figure.Unit == f.unit {
			return figure.Value
		}
		return stats.Significant(figure.SI()/Figure{Value: 1, Unit: f.unit}.SI(), 12)
	}
	panic("hw: no figure " + key + " of a card that can be changed")
}

// Check returns the first key, in the order of ChangeKeys, whose value is not allowed.
func (ch Changes) Check() (key string, err error) {
	keys, _ := ChangeKeys()
	for key := range ch {
		if !slices.Contains(keys, key) {
			text := "unknown figure of a card; known: " + strings.Join(keys, ", ")
			if near := nearest.Name(key, keys); near != "" {
				text = fmt.Sprintf("unknown figure of a card, did you mean %q?", near)
			}
			return key, errors.New(text)
		}
	}
	for _, f := range changeable {
		v, set := ch[f.key]
		if set && !(v >= minChange && v <= maxChange) {
			return f.key, fmt.Errorf("want a number from %g to %g, in %s", minChange, maxChange, f.unit)
		}
	}
	return "", nil
}

// CheckChanges returns the first key of changes that this card cannot have, by itself or together
// with its other figures.
func (c *Card) CheckChanges(ch Changes) (key string, err error) {
	if key, err := ch.Check(); err != nil {
		return key, err
	}
	var at *tomlfile.KeyError
	if len(ch) == 0 || !errors.As(c.with(ch).Link.validate(), &at) {
		return "", nil
	}
	key = strings.Replace(at.Path, ".", "_", 1)
	if _, own := ch[key]; !own {
		key = "link_nominal"
	}
	return key, fmt.Errorf("%w; link_nominal follows link_h2d and "+
		"link_d2h unless it is set", at.Err)
}

// minChange and maxChange bound every figure of Changes.
const minChange, maxChange = 1e-3, 1e6

// ChangeRange is the allowed range of a figure of Changes, in its unit.
const ChangeRange = ">= 0.001, <= 1e+06"

// with returns the card with changed figures. If a direction of the link changes, its nominal speed
// and duplex rates scale alike, unless they are changed too. FP8 and FP4 peaks scale with
// peak_fp16.
func (c *Card) with(ch Changes) *Card {
	if len(ch) == 0 {
		return c
	}
	out := *c
	for _, f := range changeable {
		if v, ok := ch[f.key]; ok {
			*f.figure(&out) = Figure{Value: v, Unit: f.unit, From: Derived,
				Source: "set by the configuration"}
		}
	}
	for _, f := range []*Figure{&out.GPU.PeakFP8, &out.GPU.PeakFP4} {
		if f.Set() {
			f.scale(out.GPU.PeakFP16.SI()/c.GPU.PeakFP16.SI(), "as peak_fp16")
		}
	}
	before, after := c.Link.H2D.SI()+c.Link.D2H.SI(), out.Link.H2D.SI()+out.Link.D2H.SI()
	if before != after {
		for key, f := range map[string]*Figure{"link_duplex_copy": &out.Link.DuplexCopy,
			"link_duplex_kernel": &out.Link.DuplexKernel} {
			if _, own := ch[key]; !own && f.Set() {
				f.scale(after/before, "both directions as each of them")
			}
		}
		if _, own := ch["link_nominal"]; !own {
			out.Link.Nominal.scale(math.Max(
				out.Link.H2D.SI()/c.Link.H2D.SI(), out.Link.D2H.SI()/c.Link.D2H.SI()),
				"as the faster direction")
		}
	}
	return &out
}

// scale multiplies the figure, rounds to derivedDigits, and appends the reason to its source.
func (f *Figure) scale(by float64, why string) {
	if by == 1 {
		return
	}
	f.Value = stats.Significant(f.Value*by, derivedDigits)
	f.Source = fmt.Sprintf("%s, times %.4g (%s)", f.Source, by, why)
	f.From = Derived
}

// Libraries are the keys of a card's [kernels]; engines name them.
var Libraries = []string{"sparseserve", "fa2", "fa3"}

// Figures lists the card's figures in the order of its file.
func (c *Card) Figures() []NamedFigure { return figuresOf(c) }

// Figures lists the engine's figures in the order of its file.
func (e *Engine) Figures() []NamedFigure { return figuresOf(e) }

// Interconnect is the link between the GPUs of one host.
type Interconnect struct {
	// all links of a GPU together, one direction
	Nominal Figure `toml:"nominal,omitempty" dim:"rate,optional"`
}
