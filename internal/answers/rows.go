package answers

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// load is the load of a run: arrivals per second, or the clients of a closed loop.
type load struct {
	clients int
	rate    float64
}

func loadOf(s *metrics.Summary) load { return load{s.Concurrency, s.Rate} }

func (l load) String() string {
	switch {
	case l.clients > 0:
		return "c=" + strconv.Itoa(l.clients)
	case l.rate == 0:
		return "trace" // arrivals as recorded
	}
	return strconv.FormatFloat(l.rate, 'g', -1, 64)
}

// words returns the load as words. unit is the unit of rates.
func (l load) words(unit string) string {
	switch {
	case l.clients > 0:
		return Count(l.clients, "client")
	case l.rate > 0:
		return stats.Tick(l.rate) + " " + Short(unit)
	}
	return "arrivals as recorded"
}

// runRow is one system at one load under one setting of the axes, with a run for each seed.
type runRow struct {
	set    []string // the value of each axis
	shown  []string // the values with three digits, if no two then look alike
	load   load
	system string
	name   string // the system with its settings
	group  int    // rows of a group stand together between rules
	runs   []*metrics.Summary

	// in pictures
	series string
	x      float64
	at     string // x in words
}

// axes lists the keys whose values differ between runs, except keys shown by load or system.
func (r *Runs) axes() []string {
	keys := map[string]any{}
	for _, settings := range r.Settings {
		maps.Copy(keys, settings)
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(keys)), func(key string) bool {
		values := distinct(r.Settings, func(settings *map[string]any) string {
			return config.Show((*settings)[key]) // nil where it is not set
		})
		return len(values) < 2 || slices.Contains([]string{"system.preset", "workload.rate",
			"workload.concurrency", "seed", "fleet.replicas"}, key)
	})
}

// set lists the values of axes for a run.
func (r *Runs) set(run int, axes []string) []string {
	values := make([]string, len(axes))
	for i, key := range axes {
		values[i] = "-"
		if v, ok := r.Settings[run][key]; ok {
			values[i] = strings.Trim(config.Show(v), `"`)
		}
	}
	return values
}

// settingsText lists axes with the values that are set, each after a comma, without some keys.
func settingsText(set, axes []string, without ...string) (text string) {
	for i, value := range set {
		if value != "-" && !slices.Contains(without, axes[i]) {
			text += ", " + config.KeyName(axes[i]) + "=" + value
		}
	}
	return text
}

// folder returns the folder of a run's requests; "" if there is none.
func (r *Runs) folder(s *metrics.Summary) string {
	for i := range r.Folders {
		if s == &r.Sums[i] {
			return r.Folders[i]
		}
	}
	return ""
}

// systemOf names the system of a run, and the size of its fleet.
func systemOf(s *metrics.Summary) string {
	if s.Replicas > 1 {
		return s.System + " x" + strconv.Itoa(s.Replicas)
	}
	return s.System
}

// rows groups the runs by setting and load, systems in the order of the runs.
func (r *Runs) rows(axes []string) (rows []runRow) {
	order := map[string]int{} // of settings
	for i := range r.Sums {
		s := &r.Sums[i]
		one := runRow{set: r.set(i, axes), load: loadOf(s), system: systemOf(s)}
		key := fmt.Sprint(one.set)
		if _, known := order[key]; !known {
			order[key] = len(order)
		}
		j := slices.IndexFunc(rows, func(x runRow) bool {
			first := x.runs[0]
			return x.system == one.system && x.load == one.load && slices.Equal(x.set, one.set) &&
				first.Model == s.Model && first.GPU == s.GPU
		})
		if j < 0 {
			j = len(rows)
			rows = append(rows, one)
		}
		rows[j].runs = append(rows[j].runs, s)
	}
	slices.SortStableFunc(rows, func(a, b runRow) int {
		return cmp.Or(cmp.Compare(order[fmt.Sprint(a.set)], order[fmt.Sprint(b.set)]),
			cmp.Compare(a.load.clients, b.load.clients), cmp.Compare(a.load.rate, b.load.rate))
	})
	group(rows)
	for i := range axes {
		full := func(x *runRow) string { return x.set[i] }
		shown := func(x *runRow) string { return stats.Short(x.set[i]) }
		if len(distinct(rows, shown)) < len(distinct(rows, full)) {
			shown = full
		}
		for j := range rows {
			rows[j].shown = append(rows[j].shown, shown(&rows[j]))
		}
	}
	for i := range rows {
		rows[i].name = rows[i].system + settingsText(rows[i].shown, axes)
	}
	return rows
}

// group groups adjacent rows of one setting and, among several systems, of one load.
func group(rows []runRow) {
	systems := len(distinct(rows, func(x *runRow) string { return x.system }))
	loads := len(distinct(rows, func(x *runRow) load { return x.load }))
	for i := 1; i < len(rows); i++ {
		a, b := &rows[i-1], &rows[i]
		if b.group = a.group; systems > 1 && !a.with(b) || loads > 1 && !slices.Equal(a.set, b.set) {
			b.group++
		}
	}
}

// with reports whether two rows differ only by their system.
func (r *runRow) with(other *runRow) bool {
	return r.load == other.load && slices.Equal(r.set, other.set)
}

// values lists a metric of the runs that have it.
func (r *runRow) values(m *metrics.Metric) (all []float64) {
	for _, s := range r.runs {
		if v, known := m.Shown(s); known && s.Completed > 0 {
			all = append(all, v)
		}
	}
	return all
}

// mean returns the mean of a metric over the runs that have it.
func (r *runRow) mean(m *metrics.Metric) (mean float64, known bool) {
	all := r.values(m)
	if len(all) == 0 {
		return 0, false
	}
	return stat.Mean(all, nil), true
}

// cell shows the mean of a metric, or a dash.
func (r *runRow) cell(m *metrics.Metric) doc.Cell {
	v, known := r.mean(m)
	if !known {
		return doc.None()
	}
	return doc.Number(v)
}

// rejects reports whether requests of a run were rejected.
func (r *runRow) rejects() bool {
	return slices.ContainsFunc(r.runs, func(s *metrics.Summary) bool { return s.Rejected > 0 })
}

// preempts reports whether a run preempted a request.
func (r *runRow) preempts() bool {
	return slices.ContainsFunc(r.runs, func(s *metrics.Summary) bool { return s.Preempted > 0 })
}

// met counts the runs that met the service level, and the runs that can be judged: a run that ended
// early is not judged.
func (r *runRow) met() (met, judged int) {
	for _, s := range r.runs {
		ok, known := s.MetSLO()
		if known {
			judged++
		}
		if ok {
			met++
		}
	}
	return met, judged
}

// state reports whether the runs met the service level, and the state of the queue.
func (r *runRow) state() string {
	met, judged := r.met()
	text := fmt.Sprintf("%d/%d", met, judged)
	switch {
	case judged == 0:
		text = "-"
	case met == len(r.runs):
		text = "met"
	case met == 0 && judged == len(r.runs):
		text = "no"
	}
	switch unstable, grows := r.queue(); {
	case unstable:
		text += ", unstable"
	case grows:
		text += ", waits grow"
	}
	return text
}

// queue reports whether the queue of a run was unstable or, if none was, whether waits grew in a
// run that is too short to tell.
func (r *runRow) queue() (unstable, grows bool) {
	for _, s := range r.runs {
		unstable = unstable || warn.Has(s.Warnings, warn.UnstableQueue)
		grows = grows || warn.Has(s.Warnings, warn.WaitsGrow)
	}
	return unstable, grows && !unstable
}

const (
	star     = "*"
	survivor = "†"
)

// mark returns a star for the best of the systems at a load, within 1 %. If all are equally good,
// none has a star. A row with rejected requests is not compared, because its remaining load
// differs.
func mark(rows []runRow, r *runRow, m *metrics.Metric) string {
	if r.rejects() {
		return survivor
	}
	sign := 1.0
	if m.Higher {
		sign = -1
	}
	best, worst := math.Inf(1), math.Inf(-1)
	for i := range rows {
		if v, known := rows[i].mean(m); known && rows[i].with(r) && !rows[i].rejects() {
			best, worst = min(best, sign*v), max(worst, sign*v)
		}
	}
	v, known := r.mean(m)
	if good := best + 0.01*math.Abs(best); known && worst > good && sign*v <= good {
		return star
	}
	return ""
}
