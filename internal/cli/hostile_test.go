package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw"
)

// TestHostileCommands draws command lines and configurations from the schema of keys, sensible and
// hostile ones, and carries them out on the simulator. None panics or hangs; each ends with status
// 0 and finite figures, with status 1 and one line of error, or interrupted. No file that it reads
// is another afterwards, and damage is said. `make hunt` draws 10^5.
func TestHostileCommands(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	schema := readSchema(t)
	simulator := run.NewSimulator()
	lay := func() map[string]string {
		layTraps(t)
		if status, _, errs := runHere(t.Context(), simulator.Run, "simulate", "nested.toml", "--out",
			"S"); status != exitOK {
			t.Fatal(errs)
		}
		return regular(t)
	}
	before := lay()
	names := "\n" + strings.Join(ls(t), "\n") + "\n"
	last := filepath.Join(t.TempDir(), "last-command")
	counts := map[int]int{} // of statuses
	defer func() { t.Log("commands by status:", counts) }()
	rapid.Check(t, func(rt *rapid.T) {
		args := drawCommand(rt, schema)
		// A crash of another goroutine ends the process: the remaining file names its cause.
		note := strings.Join(args, "\n") + "\n"
		if text, err := os.ReadFile("drawn.toml"); err == nil {
			note += "drawn.toml:\n" + string(text)
		}
		if err := os.WriteFile(last, []byte(note), 0o644); err != nil {
			rt.Fatal(err)
		}
		e := endingOf(rt, note, simulator, args)
		counts[e.status]++
		after, left := regular(t), false
		for path, text := range before {
			now, there := after[path]
			changed := now != text || !there
			if left = left || changed; changed && reads(args, path) {
				rt.Fatalf("%s\n%s is now %.200q", note, path, now)
			}
		}
		for _, made := range ls(t) {
			if left || !strings.Contains(names, "\n"+made+"\n") {
				if err := os.RemoveAll(made); err != nil {
					rt.Fatal(err)
				}
			}
		}
		if left {
			before = lay()
		}
		for path := range after {
			if _, ours := before[path]; !ours {
				os.Remove(path)
			}
		}
		checkEnding(rt, note, e)
		if strings.Contains(note, harmed) && e.status == exitOK &&
			!strings.Contains(e.out, "damaged behind the requests") {
			rt.Fatalf("%s\nno word of the damage: %s", note, e.out)
		}
	})
}

// ls names what the working folder holds.
func ls(t *testing.T) (names []string) {
	entries, err := os.ReadDir(".")
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// ending is what a command line came to.
type ending struct {
	status      int
	out, errs   string
	interrupted bool // before it ended
}

// Commands are interrupted after a while, and then have to end: a command that uses the processor
// without end hangs. One that waits without an end does so until the test's own timeout.
const (
	untilInterrupt = 200 * time.Millisecond
	untilHung      = 60 * time.Second // of processor time
)

// processorTime is the processor time used by this process.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func endingOf(t *rapid.T, note string, simulator *run.Simulator, args []string) ending {
	ctx, cancel := context.WithTimeout(context.Background(), untilInterrupt)
	defer cancel()
	done := make(chan ending, 1)
	go func() {
		status, out, errs := runHere(ctx, simulator.Run, args...)
		done <- ending{status, out, errs, ctx.Err() != nil}
	}()
	for start := processorTime(); ; {
		select {
		case o := <-done:
			return o
		case <-time.After(time.Second):
			if processorTime()-start > untilHung {
				panic("hangs: " + note) // with the stacks of all goroutines
			}
		}
	}
}

var notFinite = regexp.MustCompile(`\b(NaN|[+-]?Inf)\b`)

func checkEnding(t *rapid.T, note string, o ending) {
	var lines []string
	for line := range strings.Lines(o.errs) {
		if strings.HasPrefix(line, "sparseserve: ") {
			lines = append(lines, line)
		}
	}
	switch {
	case o.status == exitOK && len(lines) == 0 && !notFinite.MatchString(o.out):
	case o.status == exitFailed && len(lines) == 1 && strings.HasSuffix(o.errs, lines[0]):
	case o.status == Interrupted && o.interrupted:
	default:
		t.Fatalf("%s\nstatus %d, stderr %q, stdout %q", note, o.status, o.errs, o.out)
	}
	if internals.MatchString(o.errs) {
		t.Fatalf("%s\na library's words: %s", note, o.errs)
	}
	if strings.ContainsAny(o.out+o.errs, "\x1b\u009b") {
		t.Fatalf("%s\nstderr %q, stdout %q", note, o.errs, o.out)
	}
	if strings.Contains(o.errs, "panic") || strings.Contains(o.errs, "runtime error") ||
		len(o.errs) > 4000 {
		t.Fatalf("%s\nstderr %q", note, o.errs)
	}
}

// schemaKey is a row of keys.csv.
type schemaKey struct {
	name, kind string
	words      []string // of a string
	ends       []string // of a number's range
}

func readSchema(t *testing.T) (keys []schemaKey) {
	rows := configKeys("")
	if len(rows) < 60 {
		t.Fatalf("%d keys", len(rows))
	}
	for _, row := range rows {
		k := schemaKey{name: row.Key, kind: row.Type}
		for value := range strings.SplitSeq(row.Values, ", ") {
			if relation, end, ok := strings.Cut(value, " "); ok && strings.Trim(relation, "<>=") == "" {
				k.ends = append(k.ends, end)
			} else if value != "" && value != "a path" {
				k.words = append(k.words, value)
			}
		}
		keys = append(keys, k)
	}
	return keys
}

// layTraps makes files that are no configurations, models, cards, traces, records or results.
func layTraps(t *testing.T) {
	card, err := hw.LoadCard("h100-80gb")
	if err := errors.Join(err, os.MkdirAll("in/runs/x", 0o755),
		card.Write("card.toml")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"empty": "", "binary": "\x00\xff\x1f\x8b\x08", "half.json": `{"hidden_size": 1e999, "num_`,
		"list.json": "[]",
		"half.toml": "[workload\nrate=", "deep.toml": strings.Repeat("[", 5000),
		"trace.csv": goodTrace,
		"back.csv":  "arrived_s,prompt_tokens,output_tokens,set\n5,900,3,\n1,40,2,a\n",
		"huge.csv": "arrived_s,prompt_tokens,output_tokens,set\n" +
			"1e308,9223372036854775807,9223372036854775807,\n",
		"azure.csv": "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n",
		"moon.jsonl": "{\"timestamp\": 0, \"input_length\": 700, \"output_length\": 2, \"hash_ids\": " +
			"[0, 1]}\n",
		"tiny.toml": tiny, "nested.toml": fmt.Sprintf(nested, "trace.csv"), "in/.hidden": goodTrace,
		"in/config.toml": fmt.Sprintf(nested, "ttft.csv"), "in/ttft.csv": goodTrace,
		"in/base.toml": fmt.Sprintf(nested, "../trace.csv"), "in/runs/x/t.csv": goodTrace,
		"record.csv": goodRecord, "prices.toml": goodPrices, "model.json": goodModel,
		"heads.json": `[{"0": ["vertical_and_slash", 1000, 6096, 336]}]`,
	} {
		writeFile(t, name, text)
	}
	if err := errors.Join(syscall.Mkfifo("fifo", 0o644), os.Mkdir("folder", 0o755),
		os.Symlink("loop", "loop"), os.Symlink("/dev/zero", "zero"), os.Link("trace.csv", "hard.csv"),
		os.Symlink("trace.csv", "soft.csv"), os.Mkdir("R", 0o755),
		os.Symlink("/dev/zero", "R/summary.json")); err != nil {
		t.Fatal(err)
	}
}
