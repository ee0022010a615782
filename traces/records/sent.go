package records

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// sent is a request as recorded.
type sent struct {
	where  place // for messages
	failed bool  // the other fields are unused
	at     float64
	exact  des.Time // at on the record's clock, if it is given as a decimal
	prompt int
	output int
	ttft   float64
	e2e    float64

	content *prefix.Content // of the prompt, if the record describes it
	text    string          // prompt or request body
}

// place is the position of a request in a record: a line, or an index into a JSON document.
type place struct {
	line              int
	start, ttft, last string // keys of the times
}

// slack is the tolerance of e2e below ttft, in seconds: both are differences of times since 1970,
// or rounded to microseconds.
const slack = 2e-6

// order checks all requests, sorts them by arrival, and moves the first to 0.
func (m *Record) order(file string, all []sent) error {
	for i := range all {
		s := &all[i]
		if s.failed {
			m.Failed++
			continue
		}
		var v *rows.ValueError
		if errors.As(s.check(), &v) {
			return v.In(file, s.where.line)
		}
	}
	all = slices.DeleteFunc(all, func(s sent) bool { return s.failed })
	if len(all) == 0 {
		if m.Failed > 0 {
			return &rows.Error{File: file, Problem: "no requests in it but " +
				rows.Plural(m.Failed, "failed one")}
		}
		return &rows.Error{File: file, Problem: "no requests in it"}
	}
	identifyTexts(all)
	slices.SortStableFunc(all, func(a, b sent) int {
		return cmp.Or(cmp.Compare(a.exact, b.exact), cmp.Compare(a.at, b.at))
	})
	first := all[0]
	for _, s := range all {
		at := s.exact - first.exact + des.FromSeconds(s.at-first.at)
		m.Requests = append(m.Requests, Request{At: at, Prompt: s.prompt, Output: s.output, TTFT: s.ttft,
			E2E: max(s.e2e, s.ttft), Content: s.content})
	}
	return nil
}

// check returns an error for an invalid answered request, or nil.
func (s *sent) check() error {
	for _, v := range []struct {
		key   string
		value float64
	}{{s.where.start, s.at}, {s.where.ttft, s.ttft}, {s.where.last, s.e2e}} {
		switch {
		case math.IsNaN(v.value) || math.IsInf(v.value, 0):
			return rows.Wrong(v.key, rows.Decimals(v.value), "not a finite number of seconds")
		case v.value < 0:
			return rows.Wrong(v.key, rows.Decimals(v.value), "negative; times run forward")
		case v.value > rows.Latest.Seconds():
			return rows.Wrong(v.key, rows.Decimals(v.value), "later than 285 years; is the unit right?")
		}
	}
	switch {
	case s.ttft == 0:
		return rows.Wrong(s.where.ttft, "0", "must be above 0; record with streaming on, so that "+
			"first tokens have a time")
	case s.e2e < s.ttft-slack:
		return rows.Wrong(s.where.last, rows.Decimals(s.e2e), "the last token comes before the first, "+
			"at "+rows.Decimals(s.ttft)+" s")
	case s.prompt < 1 || s.prompt > rows.MaxTokens || s.output < 1 || s.output > rows.MaxTokens:
		return rows.Wrong("tokens", fmt.Sprintf("%d and %d", s.prompt, s.output),
			fmt.Sprintf("prompt and output must each have 1 to %d tokens", rows.MaxTokens))
	}
	return nil
}

// field is a key of a record.
type field struct {
	key   string
	there bool
}

// required returns an error that names the missing keys of a place and how to record them; nil if
// all are present.
func required(where, advice string, fields ...field) error {
	var missing []string
	for _, f := range fields {
		if !f.there {
			missing = append(missing, f.key)
		}
	}
	if missing == nil {
		return nil
	}
	return rows.Wrong(where, "", "lacks "+strings.Join(missing, ", ")+"; "+advice)
}
