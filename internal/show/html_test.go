package show

import (
	"bytes"
	"encoding/json"
	"html"
	"reflect"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/internal/doc"
)

const hostile = "</script><script>alert(\"x\")</script><!-- {{body}} %s %!d &amp; ' <b | =1+1"

// plant sets every text of a value, and makes every slice one long.
func plant(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		plant(v.Index(0), text)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		plant(v.Elem(), text)
	case reflect.Struct:
		for i := range v.NumField() {
			plant(v.Field(i), text)
		}
	}
}

func pageOf(t *testing.T, d *doc.Doc) string {
	t.Helper()
	var out bytes.Buffer
	if err := HTML(&out, d); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Whatever texts results have, they are shown and never read: as HTML, as a script, as a format
// or as a mark of the template.
func TestHostileTexts(t *testing.T) {
	var empty, planted doc.Doc
	plant(reflect.ValueOf(&planted).Elem(), hostile)
	before, after := pageOf(t, &empty), pageOf(t, &planted)
	for _, mark := range []string{"<script", "</script", "<!--", "<b", "%!(", "MISSING"} {
		more := map[string]int{"<b": 1}[mark] // a chart's title
		if was, is := strings.Count(before, mark), strings.Count(after, mark); is != was+more {
			t.Errorf("%q: %d times, %d without results", mark, is, was)
		}
	}
	escaped := strings.ReplaceAll(html.EscapeString(hostile), "+", "&#43;")
	if shown := strings.Count(after, escaped); shown < 15 {
		t.Errorf("only %d texts are shown", shown)
	}
	_, data, _ := strings.Cut(after, `id="charts">`)
	data, _, _ = strings.Cut(data, "</script>")
	var charts []doc.Chart
	if err := json.Unmarshal([]byte(data), &charts); err != nil || len(charts) != 1 ||
		charts[0].Title != hostile {
		t.Errorf("%d charts: %v", len(charts), err)
	}
}
