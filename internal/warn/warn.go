// Package warn represents warnings about results as data. Code decides by a warning's Kind, never
// by its text, because a text may be reworded.
package warn

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Warning is a caveat of a result.
type Warning struct {
	Kind Kind
	// Subject is the subject of the warning, such as a key, a kernel or a file. It is empty if the
	// kind determines it.
	Subject string
	// Numbers holds the text's numbers by name, so that a program need not parse the sentence.
	Numbers map[string]float64
	// Text is one sentence for a reader.
	Text string
}

// New returns a warning of a kind.
func New(kind Kind, format string, args ...any) Warning {
	return Warning{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// About returns the warning with its subject.
func (w Warning) About(subject string) Warning {
	w.Subject = subject
	return w
}

// With returns the warning with its numbers.
func (w Warning) With(numbers map[string]float64) Warning {
	w.Numbers = numbers
	return w
}

func (w Warning) String() string { return w.Text }

// Severity determines how a warning is shown.
type Severity string

const (
	// Serious warnings come first: without them figures are misread.
	Serious Severity = "serious"
	// Care is for warnings that limit the validity of figures.
	Care Severity = "care"
	// Note is for warnings that nearly every run has. They are shown on request.
	Note Severity = "note"
)

// Severity returns the severity of the warning's kind.
func (w Warning) Severity() Severity {
	switch {
	case slices.Contains(serious, w.Kind):
		return Serious
	case w.Kind == Extrapolated || w.Kind == HeadsSampled:
		return Note
	}
	return Care
}

// asJSON is a warning in a result file.
type asJSON struct {
	Kind     Kind               `json:"kind"`
	Severity Severity           `json:"severity"`
	Subject  string             `json:"subject,omitempty"`
	Numbers  map[string]float64 `json:"numbers,omitempty"`
	Text     string             `json:"text"`
}

// MarshalJSON adds the severity.
func (w Warning) MarshalJSON() ([]byte, error) {
	return json.Marshal(asJSON{w.Kind, w.Severity(), w.Subject, w.Numbers, w.Text})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (w *Warning) UnmarshalJSON(text []byte) error {
	var v asJSON
	if err := json.Unmarshal(text, &v); err != nil {
		return errors.New("a warning: want an object with kind and text, as this version writes")
	}
	*w = Warning{v.Kind, v.Subject, v.Numbers, v.Text}
	return nil
}

// Has reports whether one of the warnings has one of the kinds.
func Has(all []Warning, kinds ...Kind) bool {
	return slices.ContainsFunc(all, func(w Warning) bool { return slices.Contains(kinds, w.Kind) })
}

// Texts returns the texts of warnings, in order.
func Texts(all []Warning) []string {
	texts := make([]string, len(all))
	for i := range all {
		texts[i] = all[i].Text
	}
	return texts
}

// Rank orders kinds: the serious ones by gravity, then all others.
func (k Kind) Rank() int {
	if i := slices.Index(serious, k); i >= 0 {
		return i
	}
	return len(serious)
}

// NotesTitle returns the number of notes as a title.
func NotesTitle(n int) string {
	if n == 1 {
		return "1 note on extrapolation and sampling"
	}
	return fmt.Sprintf("%d notes on extrapolation and sampling", n)
}
