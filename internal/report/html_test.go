package report

import (
	"encoding/json"
	"html"
	"reflect"
	"strings"
	"testing"
)

const hostile = `</script><script>alert("x")</script><!-- {{body}} %s %!d &amp; ' <b`

// plant sets every text of a value, and makes every slice one long.
func plant(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostile)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		plant(v.Index(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		plant(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			plant(v.Field(i))
		}
	}
}

// Whatever texts results have, they are shown and never read: as HTML, as a script, as a format
// or as a mark of the skeleton.
func TestHostileTexts(t *testing.T) {
	var empty, planted page
	plant(reflect.ValueOf(&planted).Elem())
	before, err1 := empty.render()
	after, err2 := planted.render()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	count := func(text []byte, of string) int { return strings.Count(string(text), of) }
	for _, mark := range []string{"<script", "</script", "<!--", "<b", "%!(", "MISSING"} {
		more := map[string]int{"<b": 1}[mark] // a chart's title
		if was, is := count(before, mark), count(after, mark); is != was+more {
			t.Errorf("%q: %d times, %d without results", mark, is, was)
		}
	}
	shown := count(after, html.EscapeString(hostile))
	if shown < 20 {
		t.Errorf("only %d texts are shown", shown)
	}
	_, data, _ := strings.Cut(string(after), `id="charts">`)
	data, _, _ = strings.Cut(data, "</script>")
	var charts []chart
	if err := json.Unmarshal([]byte(data), &charts); err != nil || len(charts) != 1 ||
		charts[0].Title != hostile {
		t.Errorf("%d charts: %v", len(charts), err)
	}
}
