package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// introduce says what is about to run.
func introduce(w io.Writer, c *config.Config, byDefault bool, points int) {
	if byDefault {
		fmt.Fprintf(w, "No CONFIG given: running the built-in experiment %q; --set KEY=VALUE changes it.\n", c.Name)
	}
	seeds := make([]string, len(c.Seeds))
	for i, s := range c.Seeds {
		seeds[i] = strconv.FormatUint(s, 10)
	}
	arrivals := c.Workload.Arrivals + " arrivals"
	if c.ReplaysTimes() {
		arrivals = "arrivals as recorded"
	}
	requests := "all its requests"
	if n := c.Workload.Requests; n > 0 {
		requests = count(n, "request")
	}
	fmt.Fprintf(w, "%s on %s, %s, %s, %s, %s %s: %s.\n",
		c.Model, c.GPU, c.Workload.Trace, requests, arrivals,
		plural(len(c.Seeds), "seed"), strings.Join(seeds, ", "), count(points, "run"))
}

// printFiles names the files that were written.
func printFiles(w io.Writer, files []string, points string) {
	fmt.Fprintln(w, "\nFiles:")
	for _, f := range files {
		fmt.Fprintln(w, "  "+f)
	}
	fmt.Fprintln(w, "  "+points+string(filepath.Separator)+"   every run's configuration, summary and requests")
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

func count(n int, noun string) string { return strconv.Itoa(n) + " " + plural(n, noun) }
