package hw

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/sparseserve/sparseserve/internal/tomlfile"
)

// eachFigure calls visit for every figure below v, set or not, with its dotted key and the tag of
// its field. A row that embeds a figure passes the row's tag. v must be addressable.
func eachFigure(v reflect.Value, visit func(key string, f *Figure, tag reflect.StructTag)) {
	walkFigures(v, "", "", visit)
}

func walkFigures(v reflect.Value, key string, tag reflect.StructTag,
	visit func(string, *Figure, reflect.StructTag)) {
	if f, ok := v.Addr().Interface().(*Figure); ok {
		visit(key, f, tag)
		return
	}
	switch v.Kind() {
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Float64 {
			return // a grid has thousands of numbers, and no figure among them
		}
		for i := range v.Len() {
			walkFigures(v.Index(i), fmt.Sprintf("%s[%d]", key, i), tag, visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field, sub := v.Type().Field(i), key
			if !field.Anonymous {
				sub = tomlfile.Join(key, tomlfile.Key(field))
			}
			walkFigures(v.Field(i), sub, field.Tag, visit)
		}
	}
}

// check returns an error for the first field of a struct that breaks its tags, then for the first
// wrong figure.
func check(pointer any) error {
	err := tomlfile.Check(pointer)
	eachFigure(reflect.ValueOf(pointer).Elem(), func(key string, f *Figure, tag reflect.StructTag) {
		dim, optional := strings.CutSuffix(tag.Get("dim"), ",optional")
		switch {
		case err != nil || optional && !f.Set():
		case !f.Set():
			err = tomlfile.Wrong(key, "missing figure (%s)", dim)
		default:
			if f := f.check(dim); f != nil {
				err = tomlfile.Wrong(tomlfile.Join(key, f.field), "%s", f.msg)
			}
		}
	})
	return err
}

// NamedFigure is a figure with its dotted key.
type NamedFigure struct {
	Key string
	Figure
}

// figuresOf lists a struct's figures in the order of its file.
func figuresOf(pointer any) (all []NamedFigure) {
	eachFigure(reflect.ValueOf(pointer).Elem(), func(key string, f *Figure, _ reflect.StructTag) {
		if f.Set() {
			all = append(all, NamedFigure{key, *f})
		}
	})
	return all
}
