package figures

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writeRun makes a result folder of one run, with or without its configuration.
func writeRun(t *testing.T, dir string, seed int, ttft float64, config string) {
	t.Helper()
	point := filepath.Join(dir, "points", "a")
	if err := os.MkdirAll(point, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"summary.json": fmt.Sprintf(`[{"name":"a","system":"vllm","model":"m","gpu":"h200","rate":0.1,
			"completed":9,"seed":%d,"ttft_s":{"mean":%g}}]`, seed, ttft),
		"points/a/steps.csv": "step,start_s,elapsed_s,decodes,prefills,waiting\n0,0,1,0,1,2\n",
	}
	if config != "" {
		files["points/a/config.toml"] = fmt.Sprintf("seed = %d\n%s", seed, config)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Runs of several folders are averaged where they differ by the seed alone; otherwise the legend
// says what differs, or whose they are.
func TestFoldersAreToldApart(t *testing.T) {
	const off = "[[systems]]\nname = \"vllm\"\nprefix_cache = \"off\"\nkv_gib = 4.0\n"
	vllm := strings.Replace(off, "off", "vllm", 1)
	other := vllm + "window = 2\nmargin = 1.0\nheads = \"full\"\nprefill = \"layer\"\n"
	both := []string{"prefix cache off,1", "prefix cache vllm,1"}
	for name, c := range map[string]struct {
		second float64 // TTFT
		seed   int     // of the second
		config [2]string
		want   []string // series and runs
	}{
		"one key":        {3, 1, [2]string{off, vllm}, both},
		"key and seed":   {3, 2, [2]string{off, vllm}, both},
		"seed":           {3, 2, [2]string{off, off}, []string{"vLLM,2"}},
		"what it writes": {3, 2, [2]string{off, "[output]\nsteps = true\n" + off}, []string{"vLLM,2"}},
		"nothing":        {1, 1, [2]string{off, off}, []string{"vLLM,1"}},
		"the program":    {3, 1, [2]string{off, off}, []string{"folder x,1", "folder y,1"}},
		"not known":      {3, 1, [2]string{}, []string{"folder x,1", "folder y,1"}},
		"a lot":          {3, 1, [2]string{off, other}, []string{"folder x,1", "folder y,1"}},
		"no short word": {3, 1, [2]string{off, off + "prefill_pattern = \"" +
			strings.Repeat("long", 12) + "\"\n"}, []string{"folder x,1", "folder y,1"}},
	} {
		dir := t.TempDir()
		x, y := filepath.Join(dir, "x"), filepath.Join(dir, "y")
		writeRun(t, x, 1, 1, c.config[0])
		writeRun(t, y, c.seed, c.second, c.config[1])
		files, err := DrawFolders(t.Context(), dir, []string{x, y, x + "/."}, "")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		table, err := readCurves(dir)
		if err != nil || !slices.Equal(table, c.want) {
			t.Errorf("%s: drew %q, want %q (%v)", name, table, c.want, err)
		}
		lines := 0
		for _, f := range files {
			if strings.HasPrefix(filepath.Base(f), "timeline-") {
				lines++
			}
		}
		if want := 2; name != "nothing" && lines != want {
			t.Errorf("%s: %d time lines, want %d", name, lines, want)
		}
	}
}

// readCurves lists series and runs of what is drawn of TTFT.
func readCurves(dir string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "ttft.csv"))
	if err != nil {
		return nil, err
	}
	t, err := parseTable("ttft.csv", strings.NewReader(string(text)))
	if err != nil {
		return nil, err
	}
	var all []string
	for row := range t.rows {
		all = append(all, t.text(row, "series")+","+t.text(row, "runs"))
	}
	return all, t.err
}

// A system that the folders have alike stays one: only those that differ are told apart, at every
// rate.
func TestOnlyWhatDiffersIsToldApart(t *testing.T) {
	dir := t.TempDir()
	var folders []string
	for i, kv := range []string{"4", "8"} {
		folder := filepath.Join(dir, kv)
		folders = append(folders, folder)
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf(`[{"name":"a","system":"vllm","model":"m","rate":1,"completed":1,"seed":%d},
			{"name":"b","system":"vllm","model":"m","rate":%d,"completed":1,"seed":%[1]d},
			{"name":"c","system":"other","model":"m","rate":1,"completed":1,"seed":%[1]d}]`, i, 2+i)
		config := "[[systems]]\nname = \"vllm\"\nprefill = \"p" + kv +
			"\"\n[[systems]]\nname = \"other\"\nprefill = \"layer\"\n"
		for file, text := range map[string]string{"summary.json": text, "config.toml": config} {
			if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := DrawFolders(t.Context(), dir, folders, ""); err != nil {
		t.Fatal(err)
	}
	want := []string{"vLLM, prefill p4,1", "vLLM, prefill p4,1", "other,2", "vLLM, prefill p8,1",
		"vLLM, prefill p8,1"}
	got, err := readCurves(dir)
	slices.Sort(want)
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("drew %q, want %q (%v)", got, want, err)
	}
}
