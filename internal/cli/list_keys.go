package cli

import (
	"cmp"
	_ "embed"
	"encoding/csv"
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// keysCSV has a row for each key: key, type and unit, default, values, meaning. It is made from the
// declarations of the keys, with docs/configuration.md.
//
//go:embed keys.csv
var keysCSV string

func readKeys() ([][]string, error) { return csv.NewReader(strings.NewReader(keysCSV)).ReadAll() }

// configKey is a key in --json output.
type configKey struct {
	Key     string `json:"key"`
	Type    string `json:"type"`
	Default string `json:"default"`
	Values  string `json:"values"`
	Meaning string `json:"meaning"`
}

// keys prints the keys that begin with the name.
func (l *listCmd) keys(app *App) error {
	rows, err := readKeys()
	if err != nil {
		return err
	}
	var found []configKey
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row[0]
		if strings.HasPrefix(row[0], l.Name) {
			found = append(found, configKey{row[0], row[1], row[2], row[3], row[4]})
		}
	}
	if len(found) == 0 {
		return fmt.Errorf("no key begins with %q%s; list keys without it has all", l.Name,
			config.DidYouMean(l.Name, names))
	}
	if l.JSON {
		return printJSON(app, found)
	}
	for _, k := range found {
		fmt.Fprintf(app.Stdout, "%s = %s   (%s)\n    %s\n", k.Key, cmp.Or(k.Default, "(none)"), k.Type,
			k.Meaning)
		if k.Values != "" {
			fmt.Fprintf(app.Stdout, "    values: %s\n", k.Values)
		}
	}
	return nil
}
