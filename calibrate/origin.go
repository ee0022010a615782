package calibrate

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Origin is the machine, the software and the date of samples. Samples of two origins never mix:
// all fields except the date must agree.
type Origin struct {
	Plan    string // full | quick
	Card    string
	Driver  string
	CUDA    string // toolkit of the library
	Library string // interface version of the library
	Host    string
	Memory  string // of the card, bytes
	SMs     string // of the card: how many lists' splits run at once
	Date    string // when measuring began
}

// fields lists names and values in the file's order.
func (o *Origin) fields() []struct {
	name  string
	value *string
} {
	return []struct {
		name  string
		value *string
	}{
		{"plan", &o.Plan}, {"card", &o.Card}, {"driver", &o.Driver}, {"cuda", &o.CUDA},
		{"library", &o.Library}, {"host", &o.Host}, {"memory_bytes", &o.Memory},
		{"sms", &o.SMs}, {"date", &o.Date},
	}
}

// comment returns the lines above the CSV's header.
func (o Origin) comment() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# sparseserve calibration samples, format %s\n", samplesFormat)
	for _, f := range o.fields() {
		fmt.Fprintf(&b, "# %s: %s\n", f.name, oneLine(*f.value))
	}
	return b.String()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// parseOrigin reads the comment lines. It returns the rest and the number of comment lines (at an
// error: the faulty line).
func parseOrigin(data []byte) (o Origin, rest []byte, lines int, err error) {
	fields := o.fields()
	for {
		line, after, whole := bytes.Cut(data, []byte("\n"))
		text, comment := bytes.CutPrefix(line, []byte("# "))
		if lines == 0 && string(line) != "# sparseserve calibration samples, format "+samplesFormat {
			return o, nil, 1, fmt.Errorf("want a file of calibration samples, format %s", samplesFormat)
		}
		if !comment {
			break
		}
		lines++
		data = after
		if lines > 1 {
			if lines > len(fields)+1 {
				return o, nil, lines, errors.New("one comment line more than the format has")
			}
			name, value, _ := bytes.Cut(text, []byte(": "))
			f := fields[lines-2]
			if string(name) != f.name {
				return o, nil, lines, fmt.Errorf("want %q here, got %q", f.name, text)
			}
			*f.value = oneLine(string(value))
		}
		if !whole {
			break
		}
	}
	if lines != len(fields)+1 {
		return o, nil, lines, fmt.Errorf(
			"want %d lines that say where the samples come from, got %d", len(fields)+1, lines)
	}
	return o, data, lines, nil
}

// differs describes the difference to another origin whose samples cannot be extended.
func (o Origin) differs(other Origin) string {
	mine, theirs := o.fields(), other.fields()
	for i, f := range mine {
		if f.name != "date" && oneLine(*f.value) != oneLine(*theirs[i].value) {
			return fmt.Sprintf("%s %q, not %q", f.name, *theirs[i].value, *f.value)
		}
	}
	return ""
}
