package calibrate

import (
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
)

var update = flag.Bool("update", false,
	"write the built-in card, kernels and engine of the committed samples anew")

// TestRefitH200 fits the committed samples anew and finds the committed profile: every figure
// within 0.5 %, as rounding differs between CPU architectures, and all words.
func TestRefitH200(t *testing.T) {
	c, err := Refit(filepath.Join("..", "hw", "kernels", "hopper.csv"), "")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := c.Profile.WriteBuiltIn(
			filepath.Join("..", "hw"), "h200", "hopper", liveEngine); err != nil {
			t.Fatal(err)
		}
		t.Skip("written; the next build has it")
	}
	want, err := hw.Load("h200", "sparseserve-live", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.Fits { // of errors only that they are small or large alike
		got, want := &c.Profile.Fits[i], &want.Fits[i]
		if math.Abs(got.MedianError-want.MedianError) > 0.003 ||
			math.Abs(got.MaxError-want.MaxError) > 0.01 || len(got.Flags) != len(want.Flags) {
			t.Errorf("quality is %+v, the profile says %+v", *got, *want)
		}
		*got = *want
	}
	n := same(t, "", reflect.ValueOf(*c.Profile), reflect.ValueOf(*want))
	if n < 100 {
		t.Errorf("only %d numbers compared", n)
	}
}

// same compares two values field by field and counts the numbers.
func same(t *testing.T, path string, got, want reflect.Value) (numbers int) {
	switch got.Kind() {
	case reflect.Struct:
		for i := range got.NumField() {
			numbers += same(t, path+"."+got.Type().Field(i).Name, got.Field(i), want.Field(i))
		}
	case reflect.Slice:
		if got.Len() != want.Len() {
			t.Errorf("%s: %d entries, the profile has %d", path, got.Len(), want.Len())
			return 0
		}
		for i := range got.Len() {
			numbers += same(t, fmt.Sprintf("%s[%d]", path, i), got.Index(i), want.Index(i))
		}
	case reflect.Float64:
		if a, b := got.Float(), want.Float(); math.Abs(a-b) > 0.005*math.Abs(b) {
			t.Errorf("%s: %v, the profile has %v", path, a, b)
		}
		return 1
	default:
		if a, b := got.Interface(), want.Interface(); a != b {
			t.Errorf("%s: %v, the profile has %v", path, a, b)
		}
	}
	return numbers
}
