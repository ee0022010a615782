package cuda

import (
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// operations is one of each, in the order of the header's SS_OP_ constants.
func operations() []Operation {
	return []Operation{
		&EmptyArgs{}, &MemcpyArgs{}, &MemsetArgs{}, &FillArgs{}, &FlashH2DArgs{}, &GPUScatterArgs{},
		&MemcpyBlocksArgs{}, &SaveArgs{}, &DecodeArgs{}, &PSAArgs{},
		&PrefillArgs{}, &DigestArgs{}, &ScoresArgs{}, &TopKArgs{},
		&SelectArgs{}, &LinearArgs{}, &EmbedArgs{}, &RMSNormArgs{}, &RopeArgs{}, &SiluMulArgs{},
		&ArgmaxArgs{}, &LookupArgs{}, &TableArgs{}, &KVWriteArgs{},
		&MIAttendArgs{}, &MIPoolArgs{}, &MIBlocksArgs{}, &MIEstimateArgs{}, &MITopKArgs{}, &MILinesArgs{},
		&MIGatherArgs{}, &SwapInArgs{}, &HeadLinearArgs{}, &RotateArgs{}, &LatentWriteArgs{},
		&IndexScoresArgs{}, &LatentAttendArgs{},
	}
}

// The Go structs must be laid out as the header's do: every field of every one.
func TestStructsMatchTheHeader(t *testing.T) {
	var layout func() *int32
	purego.RegisterFunc(&layout, symbolAt(t, open(t), "fake_layout"))
	values := unsafe.Slice(layout(), 1000)
	for _, v := range []any{
		MemcpyArgs{}, MemsetArgs{}, FillArgs{}, BlocksArgs{}, LookupArgs{}, TableArgs{},
		SwapInArgs{}, HeadLinearArgs{}, RotateArgs{}, LatentWriteArgs{}, IndexScoresArgs{},
		LatentAttendArgs{}, SaveArgs{},
		DecodeArgs{}, PSAArgs{}, PrefillArgs{}, MIAttendArgs{}, MIPoolArgs{},
		MIBlocksArgs{},
		MIEstimateArgs{}, MITopKArgs{}, MILinesArgs{}, MIGatherArgs{}, DigestArgs{}, ScoresArgs{},
		TopKArgs{}, SelectArgs{}, LinearArgs{}, EmbedArgs{}, RMSNormArgs{}, RopeArgs{}, SiluMulArgs{},
		ArgmaxArgs{}, deviceInfoC{}, benchC{}, callC{},
	} {
		typ := reflect.TypeOf(v)
		got := []int32{int32(typ.Size())}
		for i := range typ.NumField() {
			got = append(got, int32(typ.Field(i).Offset))
		}
		end := slices.Index(values, -1)
		if !slices.Equal(got, values[:end]) {
			t.Errorf("%s: size and offsets %v, the header's are %v", typ.Name(), got, values[:end])
		}
		values = values[end+1:]
	}
	if values[0] != -2 {
		t.Error("the header has more structs than were compared")
	}
}

func TestOperationsMatchTheHeader(t *testing.T) {
	var numbers func() *int32
	purego.RegisterFunc(&numbers, symbolAt(t, open(t), "fake_operations"))
	all := operations()
	want := unsafe.Slice(numbers(), len(all)+1)
	for i, o := range all {
		if op, _ := o.operation(); op != want[i] {
			t.Errorf("%T is operation %d, the header's is %d", o, op, want[i])
		}
	}
	if int(want[len(all)]) != len(all) {
		t.Errorf("the header has %d operations, the binding %d", want[len(all)], len(all))
	}
}

// Every operation calls its own function, which gets the arguments and the stream that were given.
func TestArgumentsArrive(t *testing.T) {
	lib := open(t)
	var seen func(bytes *uint64, stream *uintptr) *byte
	purego.RegisterFunc(&seen, symbolAt(t, lib, "fake_seen"))
	err := lib.Do(func(s *Session) error {
		for i, o := range operations() {
			name := Function(o)
			if name == "ss_empty" || name == "ss_memcpy" || name == "ss_memset" {
				continue // the fake library carries these out
			}
			_, args := o.operation()
			given := unsafe.Slice((*byte)(args), reflect.TypeOf(o).Elem().Size())
			for j := range given { // differs from the other operations' arguments
				given[j] = byte(i + j)
			}
			want := slices.Clone(given)
			err := s.Launch(o, 42)
			var bytes uint64
			var stream uintptr
			got := unsafe.Slice(seen(&bytes, &stream), len(want))
			if err != nil || int(bytes) != len(want) || !slices.Equal(got, want) {
				t.Errorf("%s: %v; %d of %d bytes", name, err, bytes, len(want))
			}
			if stream != 42 && name != "ss_flash_d2h" {
				t.Errorf("%s: stream %d", name, stream)
			}
		}
		for _, c := range []struct {
			op   Operation
			want int64
		}{
			{&DecodeArgs{Batch: 10}, 10000}, {&LookupArgs{Batch: 4}, 12000}, {&PSAArgs{Batch: 3}, 6000},
			{&MIEstimateArgs{Stride: 7}, 28}, {&MITopKArgs{Rows: 2}, 10000},
		} {
			if n, err := s.Workspace(c.op); n != c.want || err != nil {
				t.Errorf("%s: workspace of %d bytes, %v", Function(c.op), n, err)
			}
		}
		for _, sink := range []int32{0, 1} {
			if yes, err := s.OnHopper(&MIAttendArgs{Sink: sink}); yes != (sink == 1) || err != nil {
				t.Errorf("OnHopper: %v, %v", yes, err)
			}
		}
		if _, err := s.Workspace(&LinearArgs{}); err == nil {
			t.Error("linears have a workspace")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestBenchSamplesArrive(t *testing.T) {
	err := open(t).Do(func(s *Session) error {
		samples, err := s.Bench(Bench{Calls: []Operation{&EmptyArgs{}, &PrefillArgs{}}, Repeats: 3,
			Clock: WallClock, FlushL2: true})
		if want := []float64{10000.75, 10001.75, 10002.75}; err != nil || !slices.Equal(samples, want) {
			t.Errorf("%v, %v; want %v", samples, err, want)
		}
		samples, ms, runs, err := s.BenchOverlapped(Bench{Calls: []Operation{&DecodeArgs{}}, Repeats: 1},
			&EmptyArgs{}, &LinearArgs{})
		if err != nil || samples[0] != 8000 || ms != 15 || runs != 2 {
			t.Errorf("overlapped: %v, %g ms, %d runs, %v", samples, ms, runs, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
