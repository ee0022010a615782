package sim_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Types of sim and the packages below it have at most 20 fields and 40 methods, functions at most
// five arguments. Types with toml or json keys, and the record of a step, mirror a file.
const (
	mostFields    = 20
	mostMethods   = 40
	mostArguments = 5
)

var records = []string{"sim/metrics.Step"}

func TestTypesAreSmall(t *testing.T) {
	methods := map[string]int{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		at := filepath.ToSlash(filepath.Join("sim", filepath.Dir(path))) + "."
		for _, decl := range file.Decls {
			switch x := decl.(type) {
			case *ast.FuncDecl:
				if n := x.Type.Params.NumFields(); n > mostArguments {
					t.Errorf("%s%s has %d arguments", at, x.Name.Name, n)
				}
				if x.Recv != nil {
					methods[at+receiver(x.Recv.List[0].Type)]++
				}
			case *ast.GenDecl:
				for _, spec := range x.Specs {
					if n, ok := fieldsOf(spec); ok {
						name := at + spec.(*ast.TypeSpec).Name.Name
						if n > mostFields && !slices.Contains(records, name) {
							t.Errorf("%s has %d fields", name, n)
						}
					}
				}
			}
		}
		return nil
	})
	if err != nil || len(methods) < 50 {
		t.Fatalf("%d types with methods: %v", len(methods), err)
	}
	for name, n := range methods {
		if n > mostMethods {
			t.Errorf("%s has %d methods", name, n)
		}
	}
}

// receiver returns the name of a method's type.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// fieldsOf counts the fields of a struct. ok is false for other types, and for keys of a file.
func fieldsOf(spec ast.Spec) (n int, ok bool) {
	named, _ := spec.(*ast.TypeSpec)
	if named == nil {
		return 0, false
	}
	body, ok := named.Type.(*ast.StructType)
	if !ok {
		return 0, false
	}
	for _, f := range body.Fields.List {
		if f.Tag != nil {
			return 0, false
		}
		n += max(1, len(f.Names))
	}
	return n, true
}
