package papers

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/nearest"
)

//go:embed claims.toml
var claimsTOML string

// Claim is a claim of a paper, with one or more numbers.
type Claim struct {
	ID     string    `toml:"-"`
	Paper  string    `toml:"paper"`
	Where  string    `toml:"where"`
	Text   string    `toml:"text"`
	Kind   string    `toml:"kind"` // ratio | share | bandwidth | points | speedup | seconds
	Values []float64 `toml:"values"`
	// Class is the kind of evidence of each number; empty: all are independent.
	Class []Class `toml:"class"`
	Note  string  `toml:"note"` // on what our number is measured, and why it differs
	measurement
	Numbers []source `toml:"numbers"` // what differs for each of several values
}

// Class is the kind of evidence that a number's agreement with the paper's is.
type Class string

const (
	Independent  Class = "independent"  // nothing was set by it
	Anchor       Class = "anchor"       // a parameter was set by it or by the same figure
	Construction Class = "construction" // it holds for any value of the parameters
	ChosenAfter  Class = "chosen-after" // it had failed before a parameter was chosen
	Product      Class = "product"      // of other numbers that are claims themselves
)

// Classes lists all classes, independent evidence first.
func Classes() []Class {
	return []Class{Independent, Anchor, Construction, ChosenAfter, Product}
}

// class returns the class of a number.
func (c *Claim) class(i int) Class {
	if len(c.Class) == 0 {
		return Independent
	}
	return c.Class[i]
}

// measured returns the measurement of number i; without experiments if the number is not measured.
func (c *Claim) measured(i int) *measurement {
	if i < len(c.Numbers) {
		return c.measurement.with(&c.Numbers[i])
	}
	return &c.measurement
}

// readClaims lists all claims in the order of claims.toml.
func readClaims() (claims []Claim) {
	table := map[string]Claim{}
	meta := decode("claims.toml", claimsTOML, &table)
	for _, key := range meta.Keys() {
		if len(key) == 1 {
			c := table[key[0]]
			c.ID = key[0]
			claims = append(claims, c)
		}
	}
	return claims
}

// decode decodes a built-in TOML file. It panics if that is malformed, because tests hold the file.
func decode(name, text string, into any) toml.MetaData {
	meta, err := toml.Decode(text, into)
	if unknown := meta.Undecoded(); err != nil || len(unknown) > 0 {
		panic(fmt.Sprint(name, ": ", err, ", unknown keys ", unknown))
	}
	return meta
}

// text describes number i. If the claim's text ends in a list with one item per number, text uses
// the item of that number.
func (c *Claim) text(i int) string {
	about, list, _ := strings.Cut(c.Text, ": ")
	if parts := strings.Split(list, ", "); len(parts) > 1 && len(parts) == len(c.Values) {
		return about + ": " + parts[i]
	}
	return c.Text
}

// Claims lists the claims with some names, each of a paper or of one claim; without names all.
func Claims(names ...string) ([]Claim, error) {
	all := readClaims()
	known := ClaimNames()
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("no paper and no claim %q%s", name, nearest.Meant(name, known))
		}
	}
	return slices.DeleteFunc(all, func(c Claim) bool {
		return len(names) > 0 && !slices.Contains(names, c.Paper) && !slices.Contains(names, c.ID)
	}), nil
}

// ClaimNames lists the names of papers and of their claims.
func ClaimNames() []string {
	return distinct(readClaims(), func(c *Claim) []string { return []string{c.Paper, c.ID} })
}

// distinct lists the values of claims, each once.
func distinct(claims []Claim, of func(*Claim) []string) (names []string) {
	for i := range claims {
		for _, name := range of(&claims[i]) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// ClaimExperiments names the experiments that claims are measured on.
func ClaimExperiments(claims []Claim) []string {
	return distinct(claims, func(c *Claim) (names []string) {
		for i := range c.Values {
			names = append(names, c.measured(i).From...)
		}
		return names
	})
}

// NullExperiments names the experiments that Null reads.
func NullExperiments(claims []Claim) []string {
	return ClaimExperiments(slices.DeleteFunc(slices.Clone(claims), func(c Claim) bool {
		return c.Null == nil
	}))
}

// Apart reports whether the claim's experiment takes so long that it runs only if named.
func (c Claim) Apart() bool { return slices.ContainsFunc(ClaimExperiments([]Claim{c}), apart) }

//go:embed claims_kept.csv
var keptCSV string

// keptColumns are the columns of claims_kept.csv: claim, index of the number, change of our model,
// our number and its 95 % interval.
var keptColumns = []string{"claim", "index", "changed", "ours", "low", "high"}

// Changes that are not settings.
const (
	Shorter   = "shorter"   // runs, as for Exchanged
	Exchanged = "exchanged" // Swapped, on shorter runs
)

// Kept judges claims with the numbers embedded in the program, for our model or for our model with
// a change. Claims without such a number are listed without one.
func Kept(claims []Claim, changed string) ([]Outcome, error) {
	rows, err := parseRecords("claims_kept.csv", []byte(keptCSV))
	if err != nil {
		return nil, err
	}
	return judgeBy(rows, claims, changed)
}

// judgeBy judges claims with the numbers that rows like those of claims_kept.csv have of a change.
func judgeBy(rows []record, claims []Claim, changed string) ([]Outcome, error) {
	return judge(claims, func(v *Outcome, _ *measurement) error {
		of := filter{"claim": v.ID, "index": v.Index, "changed": changed}
		i := slices.IndexFunc(rows, func(r record) bool { return of.takes(&r) })
		if i < 0 {
			return nil
		}
		ours, err1 := rows[i].number("ours")
		low, err2 := rows[i].number("low")
		high, err3 := rows[i].number("high")
		v.settle(ours, low, high)
		return cmp.Or(err1, err2, err3)
	})
}

// Keep writes outcomes of our model, with a change or "", to the file at path. It replaces earlier
// outcomes of the same numbers.
func Keep(path, changed string, outcomes []Outcome) error {
	var rows []record
	text, err := files.ReadResult(path)
	if err == nil {
		rows, err = parseRecords(path, text)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	t := run.NewTable(keptColumns...)
	for _, change := range changes(rows, changed) {
		all, err := judgeBy(rows, readClaims(), change)
		if err != nil {
			return err
		}
		for _, v := range all {
			i := slices.IndexFunc(outcomes, func(o Outcome) bool {
				return change == changed && o.Measured() && o.ID == v.ID && o.Index == v.Index
			})
			if i >= 0 {
				v = outcomes[i]
			}
			if v.Measured() {
				t.Add(v.ID, v.Index, change, digits(*v.Ours), digits(*v.Low), digits(*v.High))
			}
		}
	}
	return run.WriteFile(path, t.Bytes())
}

// changes lists the changes of rows and more, each once.
func changes(rows []record, more ...string) []string {
	for i := range rows {
		more = append(more, rows[i].cells["changed"])
	}
	slices.Sort(more)
	return slices.Compact(more)
}

// KeptChanges lists the changed keys of which numbers are embedded.
func KeptChanges() ([]string, error) {
	rows, err := parseRecords("claims_kept.csv", []byte(keptCSV))
	return slices.DeleteFunc(changes(rows), func(change string) bool {
		return !strings.Contains(change, "=")
	}), err
}

// digits formats more digits than are printed.
func digits(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
