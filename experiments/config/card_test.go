package config

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/internal/warn"
)

// A figure of [card] that changes another card than the one beside it, or several cards alike, is
// said with its place. One that is set for the card, or by card, is not.
func TestFiguresOfAnotherCard(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) string {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	const text = "gpu = \"h100-80gb\"\n[card]\nhbm_bandwidth = 6700\n"
	own := write("a.toml", text)
	any := write("b.toml", "[card]\nhbm_bandwidth = 6700\n")
	axes := "[[axis]]\ngrid.gpu = [\"h100-80gb\", \"h200\"]\n"
	zip := "[[axis]]\nzip.gpu = [\"h100-80gb\", \"h200\"]\nzip.card.hbm_bandwidth = [3000, 4000]\n"
	stands := `a.toml:3: card.hbm_bandwidth = 6700: stands beside gpu = "h100-80gb" and changes ` +
		"h200, which "
	each := "card.hbm_bandwidth = 6700: changes each of h100-80gb, h200"
	for _, c := range []struct {
		path string
		sets []string
		want []string
	}{
		{own, nil, nil},
		{own, []string{"gpu=h200"}, []string{stands + "--set gpu=h200 names"}},
		{own, []string{"card.hbm_bandwidth=4000", "gpu=h200"}, nil},
		{own, []string{"gpu=h200", "card.hbm_bandwidth=4000"}, nil},
		{any, []string{"gpu=h200"}, nil},
		{write("d.toml", "base = \"a.toml\"\ngpu = \"h200\"\n"), nil,
			[]string{stands + "d.toml:2 names"}},
		{write("e.toml", "base = \"a.toml\"\n"+axes), nil, []string{stands + "e.toml:3 names"}},
		{write("f.toml", "base = \"a.toml\"\n"+zip), nil, nil},
		{write("g.toml", "base = \"b.toml\"\n"+axes), nil, []string{"b.toml:2: " + each}},
		{write("h.toml", axes), []string{"card.hbm_bandwidth=6700"},
			[]string{"--set card.hbm_bandwidth=6700: changes each of h100-80gb, h200"}},
		{write("i.toml", axes+"[[axis]]\ngrid.card.hbm_bandwidth = [1, 2]\n"), nil, nil},
	} {
		for _, v := range mustSweep(t, c.path, c.sets...).Variants {
			got := v[0].Warnings
			if !slices.EqualFunc(warn.Texts(got), c.want, strings.HasPrefix) ||
				len(got) > 0 && got[0].Kind != warn.OtherCard {
				t.Errorf("%s %q: %q, want %q", c.path, c.sets, got, c.want)
			}
		}
	}
	got := mustLoad(t, own, "gpu=h200")[0].Warnings
	if len(got) != 1 || !strings.HasPrefix(got[0].Text, stands) {
		t.Errorf("without axes: %q", got)
	}
}
