package cli

import (
	"os"
	"testing"
)

// A folder or file that cannot be made is an error about the flag that names it.
func TestUnwritten(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"file": "", "mix.csv": "arrived_s,prompt_tokens,output_tokens,set\n0.5,4000,20,\n9.1,6000,20,\n",
		"s.toml": "[workload]\nrequests = 5\nrate = 1\n[[axis]]\ngrid.seed = [1, 2]\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	folder, file := "cannot make the folder", "cannot write the file"
	for _, c := range []struct {
		args             []string
		flag, path, what string
	}{
		{[]string{"simulate", "--set", "workload.rate=1"}, "--out", "file", folder},
		{[]string{"simulate", "--set", "workload.rate=1"}, "--out", "file/below/d", folder},
		{[]string{"sweep", "s.toml"}, "--out", "file", folder},
		{[]string{"sweep", "s.toml"}, "--points", "file/p", folder},
		{[]string{"whatif"}, "--out", "file/w", folder},
		{[]string{"plan"}, "--out", "file", folder},
		{[]string{"trace", "describe", "mix.csv"}, "--out", "file", folder},
		{[]string{"trace", "convert", "mix.csv"}, "--out", "file/x.csv", file},
	} {
		status, _, errs := runHere(t.Context(), pretend, append(c.args, c.flag, c.path)...)
		want := "sparseserve: " + c.flag + " " + c.path + ": " + c.what +
			": not a directory; give another\n"
		if status != exitFailed || errs != want {
			t.Errorf("%q: status %d, %q, want %q", c.args, status, errs, want)
		}
	}
	_, _, errs := runHere(t.Context(), pretend, "trace", "convert", "mix.csv", "--out", "none/x.csv")
	if want := "sparseserve: --out none/x.csv: cannot write the file: no such file or directory; " +
		"give another\n"; errs != want {
		t.Errorf("%q, want %q", errs, want)
	}
}
