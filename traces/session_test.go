package traces

import (
	"os"
	"path/filepath"
	"testing"
)

// Sessions are read where a file has the column, quoted or not; others have none.
func TestSessions(t *testing.T) {
	for name, text := range map[string]string{
		FormatCSV: "arrived_s,prompt_tokens,output_tokens,set,session\n" +
			"0,900,3,a,17\n1,40,2,a,\"x,y\"\n2,5,5,,\n",
		FormatBurstGPT: "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total " +
			"tokens,Log Type\n5,17,2,ChatGPT,472,18,490,Conversation " +
			"log\n6,\"x,y\",2,ChatGPT,472,18,490,Conversation log\n45,,3,GPT-4,10,20,30,API log\n",
		FormatAzure: "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 " +
			"18:15:46.68,374,44\n2023-11-16 18:15:47.68,374,44\n2023-11-16 18:15:48.68,374,44\n",
	} {
		path := filepath.Join(t.TempDir(), "trace.csv")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := Open(Spec{Trace: path, Arrivals: ArrivalsTrace, Speed: 1, Output: "base",
			OutputScale: 1, Datasets: AllSets(), Burstiness: 1}, 1)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := []string{"17", "x,y", ""}
		if name == FormatAzure {
			want = []string{"", "", ""}
		}
		all := collect(t, s)
		if len(all) != len(want) {
			t.Fatalf("%s: %d requests, want %d", name, len(all), len(want))
		}
		for i := range all {
			if all[i].Session != want[i] {
				t.Errorf("%s: session %d is %q, want %q", name, i, all[i].Session, want[i])
			}
		}
	}
}
