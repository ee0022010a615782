package config

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/sim/fleet"
)

// mostSeconds bounds the times of a fleet's changes.
const mostSeconds = 1e9

// checkFleet returns an error if a [fleet] table is impossible, or nil.
func checkFleet(f *fleet.Spec) *KeyError {
	err := cmp.Or(checkTable(f, "fleet"),
		checkChanges("fail", f.Fail, f.Replicas, "[s, replica, s]", "[[120, 1, 60]]"),
		checkChanges("drain", f.Drain, f.Replicas, "[s, replica]", "[[300, 1]]"))
	drained := map[float64]bool{}
	for _, d := range f.Drain {
		if err == nil {
			drained[d[1]] = true
		}
	}
	if err == nil && len(drained) == f.Replicas {
		err = &KeyError{Key: "fleet.drain", Value: rowsText(f.Drain),
			Reason: fmt.Sprintf("drains all of fleet.replicas = %d; let one take requests", f.Replicas)}
	}
	return err
}

// checkChanges checks the rows of fail or drain. want names the numbers of a row.
func checkChanges(key string, rows [][]float64, replicas int, want, example string) *KeyError {
	for i, row := range rows {
		fault := func(problem string) *KeyError {
			return &KeyError{Key: "fleet." + key, Value: rowsText(rows),
				Reason: fmt.Sprintf("row %d %s; want %s, as in %s", i+1, problem, want, example)}
		}
		switch {
		case len(row) != 1+strings.Count(want, ","):
			return fault(fmt.Sprintf("has %d numbers", len(row)))
		case !(row[0] >= 0 && row[0] <= mostSeconds):
			return fault(fmt.Sprintf("is at %g s, not 0 to %g", row[0], mostSeconds))
		case !(row[1] >= 0 && row[1] < float64(replicas)) || row[1] != float64(int(row[1])):
			return fault(fmt.Sprintf("names replica %g; with fleet.replicas = %d there are 0 to %d",
				row[1], replicas, replicas-1))
		case len(row) == 3 && !(row[2] >= 1e-6 && row[2] <= mostSeconds):
			return fault(fmt.Sprintf("lasts %g s, not 1e-06 to %g", row[2], mostSeconds))
		}
	}
	return nil
}

func rowsText(rows [][]float64) string { return strings.ReplaceAll(fmt.Sprint(rows), " ", ", ") }
