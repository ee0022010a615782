package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
)

// literal is a value as TOML has it.
func (p *pageWriter) literal(v any) string {
	if v == nil {
		return ""
	}
	var e encoder
	e.line("v", v)
	if e.err != nil {
		p.t.Fatal(e.err)
	}
	return strings.TrimPrefix(strings.TrimSpace(e.out.String()), "v = ")
}

func (p *pageWriter) parse(file string) (*token.FileSet, *ast.File) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, nil, parser.ParseComments)
	if err != nil {
		p.t.Fatal(err)
	}
	return files, parsed
}

// comments returns the comment of each field of a struct, by the field's key.
func (p *pageWriter) comments(file, typeName string) map[string]string {
	_, parsed := p.parse(file)
	about := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != typeName {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			if f.Tag != nil {
				tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`"))
				key, _, _ := strings.Cut(tag.Get("toml"), ",")
				about[key] = strings.Join(strings.Fields(f.Doc.Text()), " ")
			}
		}
		return false
	})
	return about
}

// elements returns the comment at the end of each line of a list of strings, by the string.
func (p *pageWriter) elements(file, list string) map[string]string {
	files, parsed := p.parse(file)
	byLine := map[int]string{}
	for _, group := range parsed.Comments {
		for _, c := range group.List {
			byLine[files.Position(c.Pos()).Line] = strings.TrimSpace(strings.TrimPrefix(c.Text, "//"))
		}
	}
	about := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !slices.ContainsFunc(spec.Names, func(n *ast.Ident) bool { return n.Name == list }) {
			return true
		}
		for _, e := range spec.Values[0].(*ast.CompositeLit).Elts {
			about[strings.Trim(e.(*ast.BasicLit).Value, `"`)] = byLine[files.Position(e.Pos()).Line]
		}
		return false
	})
	return about
}

// typeComment returns the comment of a type, on one line.
func (p *pageWriter) typeComment(file, typeName string) (text string) {
	_, parsed := p.parse(file)
	ast.Inspect(parsed, func(n ast.Node) bool {
		if d, ok := n.(*ast.GenDecl); ok && len(d.Specs) == 1 {
			if spec, ok := d.Specs[0].(*ast.TypeSpec); ok && spec.Name.Name == typeName {
				text = strings.Join(strings.Fields(d.Doc.Text()), " ")
			}
		}
		return true
	})
	return text
}
