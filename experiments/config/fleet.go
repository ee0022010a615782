package config

import (
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/sim/fleet"
)

// fleets lists the fleets that the experiment is expanded over.
func (c *Config) fleets() []fleet.Spec {
	fleets := make([]fleet.Spec, len(c.Replicas))
	for i, n := range c.Replicas {
		fleets[i] = c.Fleet
		fleets[i].Replicas = n
	}
	return fleets
}

// mostSeconds bounds the times of a fleet's changes.
const mostSeconds = 1e9

// checkFleets returns an error if the [fleet] table is impossible, or nil.
func checkFleets(c *Config) *KeyError {
	if err := checkName("fleet.router", c.Fleet.Router, fleet.RouterNames()); err != nil {
		return err
	}
	for _, f := range c.fleets() {
		if err := checkRanges(&f, "fleet"); err != nil {
			return err
		}
		err := checkChanges("fail", f.Fail, f.Replicas, "[s, replica, s]", "[[120, 1, 60]]")
		if err == nil {
			err = checkChanges("drain", f.Drain, f.Replicas, "[s, replica]", "[[300, 1]]")
		}
		if err != nil {
			return err
		}
		drained := map[float64]bool{}
		for _, d := range f.Drain {
			drained[d[1]] = true
		}
		if len(drained) == f.Replicas {
			return &KeyError{Key: "fleet.drain", Value: rowsText(f.Drain),
				Reason: fmt.Sprintf("drains all of fleet.replicas = %d; let one take requests", f.Replicas)}
		}
	}
	return nil
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

// oneReplica refuses a fleet of several replicas, for a setting that applies to one server only.
func (c *Config) oneReplica(reason string) *KeyError {
	switch {
	case len(c.Replicas) > 1 || c.Replicas[0] > 1:
		value := strings.ReplaceAll(fmt.Sprint(listed(&c.Replicas)), " ", ", ")
		return &KeyError{Key: "fleet.replicas", Value: value, Reason: reason}
	case len(c.Fleet.Fail) > 0:
		return &KeyError{Key: "fleet.fail", Value: rowsText(c.Fleet.Fail), Reason: reason}
	}
	return nil
}
