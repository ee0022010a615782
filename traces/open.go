package traces

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/nearest"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// options are what readers need to know: a workload, of which Trace is not used, with its seed.
type options struct {
	Spec
	tokenizer Tokenizer
	sets      []string   // of LongBench, to keep; nil: all
	lengths   *rand.Rand // draws output lengths of chat models
	order     *rand.Rand // mixes the files of a folder
	seed      uint64
	once      bool // the file is read once, so a pipe need not be kept
}

func newOptions(s Spec, t Tokenizer, seed uint64) options {
	return options{Spec: s, tokenizer: t, sets: s.datasets(), seed: seed,
		lengths: des.Rand(seed, "traces.lengths"), order: des.Rand(seed, "traces.order")}
}

// wholeFile returns the options for describing and converting a file.
func wholeFile(format string) options {
	return newOptions(Spec{Format: format, Arrivals: ArrivalsTrace, OutputScale: 1,
		LongBenchSpec: LongBenchSpec{Output: OutputBase}}, Llama2, 0)
}

// openOnce opens a trace for one complete read.
func openOnce(path, format string, tokenizer Tokenizer) (source, string, error) {
	if format != "" {
		if err := oneOf("format", format, FormatNames()); err != nil {
			return nil, "", err
		}
	}
	o := wholeFile(format)
	o.once, o.tokenizer = true, tokenizer
	return openTrace(path, o)
}

// openTrace opens a trace file or folder and returns its format.
func openTrace(path string, o options) (source, string, error) {
	if info, err := os.Stat(path); path == files.Stdin {
	} else if errors.Is(err, fs.ErrNotExist) {
		return nil, "", noFile(path)
	} else if err != nil {
		return nil, "", err
	} else if info.IsDir() {
		return openFolder(path, o)
	}
	f, err := rows.Open(path, !o.once)
	if err != nil {
		return nil, "", err
	}
	src, format, err := newSource(f, o)
	if err != nil {
		f.Close()
		return nil, "", err
	}
	return src, format, nil
}

// Traits are what the requests of a workload have.
type Traits struct {
	Format string // of a file, or of the built-in mix; empty: lengths are generated
	Timed  bool   // arrival times of their own
	Texts  bool   // prompts that a tokenizer counts
	Turns  bool   // conversations, whose turns wait for the answers before
}

// Traits reads the beginning of a file to find what its requests have.
func (s Spec) Traits() (Traits, error) {
	switch s.Trace {
	case BuiltIn:
		return Traits{Format: FormatLongBench, Texts: true}, nil
	case Sessions:
		return Traits{Turns: true}, nil
	case Synthetic:
		return Traits{}, nil
	}
	src, format, err := openTrace(s.Trace, wholeFile(s.Format))
	if err != nil {
		return Traits{}, err
	}
	_, turns := src.(*sessions)
	return Traits{format, src.timed(), src.texts(), turns}, src.Close()
}

// noFile returns the error for a path that does not exist.
func noFile(path string) error {
	generated := []string{BuiltIn, Synthetic, Sessions}
	if slices.Contains(generated, path) {
		return fmt.Errorf("%s: no such file or folder, but a generated workload; trace describe takes "+
			"a configuration, FILE.toml, with workload.trace = %q", path, path)
	}
	return fmt.Errorf("%s: no such file or folder%s", path, nearest.Meant(path, generated))
}

// newSource detects the format of a file from its first record.
func newSource(f *rows.File, o options) (source, string, error) {
	from, err := rows.NewReader(f)
	if err != nil {
		return nil, "", err
	}
	format, err := formatOf(o.Format, from)
	if err != nil {
		key := "header"
		if from.JSON() {
			key = "keys"
		}
		return nil, "", from.Fault(rows.Wrong(key, strings.Join(from.Names, ","), err.Error()))
	}
	d := newReader(format, from, &o)
	if format.grouped == "*" || format.grouped != "" && from.Has(format.grouped) {
		return newSessions(&grouped{reader: d, seed: o.seed}, o.OutputScale, o.ThinkS), format.Name, nil
	}
	return d, format.Name, nil
}
