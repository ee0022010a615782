package warn

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A result file has a warning's severity besides its fields, and reads back as the same warning.
func TestWarningInJSON(t *testing.T) {
	w := New(Rejected, "%d of %d requests rejected", 3, 9).About("KV").With(
		map[string]float64{"rejected": 3})
	text, err := json.Marshal(w)
	const want = `{"kind":"rejected","severity":"serious","subject":"KV","numbers":{"rejected":3},` +
		`"text":"3 of 9 requests rejected"}`
	if err != nil || string(text) != want {
		t.Fatalf("%s, %v, want %s", text, err, want)
	}
	var read Warning
	if err := json.Unmarshal(text, &read); err != nil || !reflect.DeepEqual(read, w) {
		t.Errorf("%+v, %v, want %+v", read, err, w)
	}
	if err := json.Unmarshal([]byte(`"3 of 9 requests rejected"`), &read); err == nil ||
		!strings.Contains(err.Error(), "want an object with kind and text") {
		t.Errorf("a bare text: %v", err)
	}
}

func TestHas(t *testing.T) {
	all := []Warning{New(Truncated, "t"), New(WaitsGrow, "w")}
	if !Has(all, UnstableQueue, WaitsGrow) || Has(all, UnstableQueue) || Has(nil, Truncated) ||
		!slices.Equal(Texts(all), []string{"t", "w"}) {
		t.Errorf("%+v", all)
	}
}
