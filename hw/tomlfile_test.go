package hw

import (
	"reflect"
	"testing"
)

// What is loaded again is the caller's own, whatever was done to what was loaded before.
func TestLoadedFilesAreNotShared(t *testing.T) {
	want, err := Load("h200", "vllm-0.15", nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // decoded, then known
		p, err := Load("h200", "vllm-0.15", nil)
		if err != nil || !reflect.DeepEqual(p, want) {
			t.Fatalf("loaded again: %v, %+v", err, p)
		}
		spoil(reflect.ValueOf(p).Elem())
		if reflect.DeepEqual(p, want) {
			t.Fatal("nothing was changed")
		}
	}
}

// spoil zeroes every element of every slice within a value.
func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			spoil(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			spoil(v.Index(i))
			v.Index(i).SetZero()
		}
	}
}
