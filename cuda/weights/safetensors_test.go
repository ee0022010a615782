package weights

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"
)

func TestHeader(t *testing.T) {
	const header = `{"b":{"dtype":"F16","shape":[2,3],"data_offsets":[4,16]},"__metadata__":{"x":"y"},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"e":{"dtype":"F8_E4M3","shape":[5],"data_offsets":[16,16]}}  `
	file := raw(header, make([]byte, 16))
	entries, start, err := readHeader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(entries, start),
		fmt.Sprintf("[{a F32 [] 0 4} {b F16 [2 3] 4 16} {e F8_E4M3 [5] 16 16}] %d",
			8+len(header)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestHeaderErrors(t *testing.T) {
	const a = `"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}`
	for _, c := range []struct {
		header string
		want   []string
	}{
		{`[]`, []string{"no JSON object"}},
		{``, []string{"no JSON object"}},
		{`PK zip`, []string{"no JSON object"}},
		{`{` + a, []string{"no JSON object"}},
		{`{"a":`, []string{"no JSON object"}},
		{`{` + a + `} {}`, []string{"no JSON object"}},
		{`{"a":{"dtype":"F16","shape":[2],"data_offsets":[0]}}`, []string{`"a"`, "span 0"}},
		{`{"a":{"dtype":"F16","shape":[2]}}`, []string{`"a"`, "no range"}},
		{`{"a":{"dtype":"F16","shape":[2.5],"data_offsets":[0,4]}}`, []string{`"a"`, "2.5"}},
		{`{"a":{"dtype":"F16","shape":[2],"data_offsets":[4,0]}}`, []string{`"a"`, "no range"}},
		{`{"a":{"dtype":"F16","shape":[2],"data_offsets":[-4,0]}}`, []string{`"a"`, "no range"}},
		{`{"a":{"dtype":"F16","shape":[9],"data_offsets":[0,18]}}`,
			[]string{`"a"`, "18", "has 16", "truncated"}},
		{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`,
			[]string{`"a"`, "F32 [2] needs 8 bytes", "span 4"}},
		{`{"a":{"dtype":"F16","shape":[-1,-2],"data_offsets":[0,4]}}`, []string{`"a"`, "impossible"}},
		{`{"a":{"dtype":"F16","shape":[9223372036854775807,4],"data_offsets":[0,4]}}`,
			[]string{`"a"`, "impossible"}},
		{`{"a":{"dtype":"F16","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`,
			[]string{`"a"`, "impossible"}},
		{`{` + a + `,"b":{"dtype":"F16","shape":[2],"data_offsets":[2,6]}}`, []string{`"a" and "b" overlap`}},
		{`{` + a + `,"b":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}`, []string{`"a" and "b" overlap`}},
	} {
		file := raw(c.header, make([]byte, 16))
		_, _, err := readHeader(bytes.NewReader(file), int64(len(file)))
		wantError(t, c.header, err, c.want...)
	}
	for _, c := range []struct {
		length uint64
		size   int
		want   string
	}{{maxHeader + 1, 100, "not a safetensors file: a header of 100000001 bytes"},
		{math.MaxUint64, 100, "not a safetensors file"}, {93, 100, "truncated"}, {0, 5, "shorter than"}} {
		file := binary.LittleEndian.AppendUint64(nil, c.length)
		file = append(file, make([]byte, 100)...)[:c.size]
		_, _, err := readHeader(bytes.NewReader(file), int64(len(file)))
		wantError(t, c.want, err, c.want)
	}
}

// Whatever the bytes, the parser returns an error or ranges within the data, apart from one another
// and of their shapes' sizes.
func FuzzHeader(f *testing.F) {
	f.Add([]byte(`{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1,1],"data_offsets":[4,8]}}`), int64(8))
	f.Add([]byte(`{"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[],"data_offsets":[6,8]}} `), int64(8))
	f.Add([]byte(`{"a":{"dtype":"I64","shape":[9999999999,9999999999],"data_offsets":[0,9223372036854775807]}}`), int64(math.MaxInt64))
	f.Add([]byte(`{"a":{},"a":{}}`), int64(0))
	f.Fuzz(func(t *testing.T, header []byte, dataBytes int64) {
		if dataBytes < 0 {
			return // a file is never shorter than its header: readHeader has seen to it
		}
		entries, err := parseHeader(header, dataBytes)
		if err != nil {
			return
		}
		last := int64(0)
		for _, e := range entries {
			if e.begin < last || e.end < e.begin || e.end > dataBytes {
				t.Fatalf("%+v after byte %d of %d", e, last, dataBytes)
			}
			last = e.end
			if each, known := elementBytes[e.dtype]; known {
				n := each
				for _, s := range e.shape {
					n *= s
				}
				if n != e.end-e.begin {
					t.Fatalf("%+v: %d bytes", e, n)
				}
			}
		}
	})
}

// Whole files, their length included.
func FuzzFile(f *testing.F) {
	f.Add(raw(`{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}`, make([]byte, 4)))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"))
	f.Fuzz(func(t *testing.T, file []byte) {
		entries, start, err := readHeader(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		for _, e := range entries {
			if start+e.end > int64(len(file)) {
				t.Fatalf("%+v beyond a file of %d bytes", e, len(file))
			}
		}
	})
}
