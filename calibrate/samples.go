package calibrate

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/internal/files"
)

// Samples is a CSV file of samples: comment lines with their origin, a header, and one row per
// point.
type Samples struct {
	Origin  Origin
	Records []Record
}

// Record holds all samples of one point, in seconds.
type Record struct {
	Point   Point
	Samples []float64
}

// Median returns the record's median.
func (r Record) Median() Median { return medianOf(r.Samples) }

// samplesFormat is the version of the file's layout.
const samplesFormat = "1"

var samplesHeader = []string{"probe", "shape", "sizes", "median_us", "low_us", "high_us",
	"samples_us"}

// digits of a sample: more than its noise.
const sampleDigits = 5

func formatMicro(seconds float64) string {
	return strconv.FormatFloat(seconds*1e6, 'g', sampleDigits, 64)
}

// appendRow writes a record as a CSV row.
func (r Record) appendRow(w files.CSVWriter) error {
	m := r.Median()
	all := make([]string, len(r.Samples))
	for i, s := range r.Samples {
		all[i] = formatMicro(s)
	}
	return w.Write([]string{r.Point.Probe, r.Point.Shape, r.Point.Sizes(),
		formatMicro(m.Value), formatMicro(m.Low), formatMicro(m.High), strings.Join(all, " ")})
}

// Encode returns the whole file.
func (s *Samples) Encode() []byte {
	var buf bytes.Buffer
	buf.WriteString(s.Origin.comment())
	w := files.NewCSVWriter(&buf)
	must(w.Write(samplesHeader))
	for _, r := range s.Records {
		must(r.appendRow(w))
	}
	must(w.Flush())
	return buf.Bytes()
}

// must panics on errors that cannot happen, such as errors of a writer to memory.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// ParseSamples reads what Encode wrote. Errors name file and line.
func ParseSamples(file string, data []byte) (*Samples, error) {
	origin, rest, lines, err := parseOrigin(data)
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", file, lines, err)
	}
	s := &Samples{Origin: origin}
	r := files.NewCSVReader(file, bytes.NewReader(rest))
	r.Above, r.FieldsPerRecord = lines, len(samplesHeader)
	seen := map[string]bool{}
	for row := 0; ; row++ {
		fields, err := r.Read()
		if err == io.EOF {
			if row == 0 {
				return nil, fmt.Errorf("%s:%d: want the header %s", file, lines+1,
					strings.Join(samplesHeader, ","))
			}
			return s, nil
		}
		line := lines + row + 1
		if err != nil {
			return nil, err
		}
		if n, _ := r.FieldPos(0); n > 0 {
			line = lines + n
		}
		if row == 0 {
			if strings.Join(fields, ",") != strings.Join(samplesHeader, ",") {
				return nil, fmt.Errorf("%s:%d: want the header %s", file, line,
					strings.Join(samplesHeader, ","))
			}
			continue
		}
		record, err := parseRecord(fields)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, line, err)
		}
		if key := record.Point.Key(); seen[key] {
			return nil, fmt.Errorf("%s:%d: %s appears twice", file, line, key)
		} else {
			seen[key] = true
		}
		s.Records = append(s.Records, record)
	}
}

func parseRecord(fields []string) (Record, error) {
	r := Record{Point: Point{Probe: fields[0], Shape: fields[1]}}
	probe := probeOf(r.Point.Probe)
	if probe == nil {
		return r, fmt.Errorf("unknown probe %q", r.Point.Probe)
	}
	var err error
	if r.Point.Axes, err = parseSizes(fields[2]); err != nil {
		return r, fmt.Errorf("%s: %w", r.Point.Probe, err)
	}
	if r.Point.Sizes() != fields[2] || !probe.fits(r.Point) {
		return r, fmt.Errorf("%s: want sizes %s, got %q", r.Point.Probe, strings.Join(probe.Axes, ", "),
			fields[2])
	}
	if r.Point.Shape != "" {
		if _, err := shapeModel(r.Point.Shape); err != nil {
			return r, fmt.Errorf("%s: %w", r.Point.Probe, err)
		}
	}
	for _, text := range strings.Fields(fields[6]) {
		us, err := strconv.ParseFloat(text, 64)
		if err != nil || !(us > 0) || math.IsInf(us, 0) || us > 1e12 {
			return r, fmt.Errorf("%s: samples_us: want a time in microseconds, got %q", r.Point.Key(), text)
		}
		r.Samples = append(r.Samples, us*1e-6)
	}
	if len(r.Samples) == 0 {
		return r, fmt.Errorf("%s: no samples", r.Point.Key())
	}
	m := r.Median()
	for i, want := range []float64{m.Value, m.Low, m.High} {
		got, err := strconv.ParseFloat(fields[3+i], 64)
		if err != nil || math.Abs(got*1e-6/want-1) > 1e-3 {
			return r, fmt.Errorf("%s: %s is %q, the samples say %s", r.Point.Key(), samplesHeader[3+i],
				fields[3+i], formatMicro(want))
		}
	}
	return r, nil
}

// seconds returns the record's time for fits.
func (r Record) seconds() float64 {
	if probeOf(r.Point.Probe).byMean {
		return stat.Mean(r.Samples, nil)
	}
	return r.Median().Value
}
