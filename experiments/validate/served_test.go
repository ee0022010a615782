package validate

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// What is wrong with a table of requests is said with its file, line, column and value.
func TestServedRequestsThatAreDamaged(t *testing.T) {
	const head = "id,arrival_s,first_token_s,last_token_s\n"
	for text, want := range map[string]string{
		"":                       "requests.csv: not a table of requests",
		"id,arrival_s\n1,2\n":    `requests.csv: no column "first_token_s"`,
		head + "1,0,x,2\n":       `requests.csv:2: first_token_s = "x": want a number`,
		head + "1,0,1,2\n2,,3,4": `requests.csv:3: arrival_s = "": want a number`,
		head + "1.5,0,1,2\n":     `requests.csv:2: id = "1.5": want an integer`,
		head + "1,0,1\n":         "requests.csv:2: 3 cells where the first row has 4",
	} {
		dir := t.TempDir()
		testkit.Rewrite(t, filepath.Join(dir, "requests.csv"), text)
		if _, err := readServed(dir); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	dir := t.TempDir()
	testkit.Rewrite(t, filepath.Join(dir, "requests.csv"), head+"7,0.5,1,2\n8,1,,\n")
	all, err := readServed(dir)
	if err != nil || len(all) != 1 || all[0].id != 7 || all[0].first != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}
