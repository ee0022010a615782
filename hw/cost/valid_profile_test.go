package cost

import (
	"testing"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/tomlfile"
)

func FuzzParseProfile(f *testing.F) {
	for _, name := range hw.CardNames() {
		data, err := tomlfile.Encode(mustProfile(f, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add("[[linears]]\nshape = '''\n")
	f.Add("a = [ { b = ")
	m, err := llm.Load("llama3-8b")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := new(hw.Profile)
		if tomlfile.Decode("card.toml", text, p) != nil || p.Validate() != nil {
			return
		}
		d, err := NewDevice(p, &m, DeviceOptions{LoadEngine: LoadFlash, SaveEngine: SaveFlash})
		if err != nil {
			t.Fatalf("a valid profile makes no device: %v", err)
		}
		w := mixedBatch()[0]
		if c := d.costs.layer(&w); c.linears <= 0 || c.prefill <= 0 || c.sparse <= 0 || c.scoring <= 0 {
			t.Fatalf("a valid profile prices %+v", *c)
		}
	})
}
