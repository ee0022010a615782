package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/traces"
)

func init() { cobra.EnableCommandSorting = false }

// field is a field of a command's struct: with the tag cmd a command of its own, with arg an
// argument, else a flag. Other tags: name, by default the field's in kebab case; help; placeholder,
// what a value is called; default; enum, the values that there are; alone, the value of a flag
// that has none; env, variables that stand for it; sep:"none", where a comma is part of a value;
// optional, required and hidden; complete, the names that a value
// can be (completion.go).
type field struct {
	value reflect.Value
	tag   reflect.StructTag
	name  string
	set   bool
}

func (f *field) has(tag string) bool {
	_, ok := f.tag.Lookup(tag)
	return ok
}

// list splits a tag at its commas.
func (f *field) list(tag string) []string {
	return strings.FieldsFunc(f.tag.Get(tag), func(r rune) bool { return r == ',' })
}

// fieldsOf lists the exported fields of a struct and of those that it embeds.
func fieldsOf(of reflect.Value) (all []*field) {
	for i := range of.NumField() {
		t := of.Type().Field(i)
		switch {
		case t.Anonymous:
			all = append(all, fieldsOf(of.Field(i))...)
		case t.IsExported():
			f := &field{value: of.Field(i), tag: t.Tag, name: t.Tag.Get("name")}
			if f.name == "" {
				f.name = kebab(t.Name)
			}
			all = append(all, f)
		}
	}
	return all
}

// kebab is split-every for SplitEvery.
func kebab(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// expand puts values into the text of a tag.
func (f *field) expand(tag string) string {
	text := f.tag.Get(tag)
	if !strings.Contains(text, "${") {
		return text
	}
	if tag != "default" {
		text = strings.ReplaceAll(text, "${default}", f.expand("default"))
	}
	return strings.NewReplacer("${paperFolder}", paperFolder, "${calibration}", defaultCalibration,
		"${splitEvery}", strconv.Itoa(splitEvery), "${traceFormats}", oneOf(traces.FormatNames()),
		"${thresholds}", thresholdNames()).Replace(text)
}

// Type, String and Set are pflag.Value.
func (f *field) Type() string {
	if enum := f.list("enum"); len(enum) > 0 && !f.has("placeholder") {
		return strings.Join(enum, "|")
	}
	return f.tag.Get("placeholder")
}

func (f *field) String() string { return "" }

func (f *field) Set(text string) error {
	values := []string{text}
	if f.isList() && f.tag.Get("sep") != "none" {
		values = strings.Split(text, ",")
	}
	enum := f.list("enum")
	for _, v := range values {
		if len(enum) > 0 && !slices.Contains(enum, v) {
			return fmt.Errorf("must be one of %s%s", strings.Join(enum, ", "),
				config.DidYouMean(v, enum))
		}
	}
	if !f.isList() {
		f.set = true
		return parse(f.value, text)
	}
	if !f.set { // in the place of the default
		f.value.SetZero()
	}
	f.set = true
	f.value.Set(reflect.AppendSlice(f.value, reflect.ValueOf(values)))
	return nil
}

func (f *field) isList() bool { return f.value.Kind() == reflect.Slice }

// parse sets a value of a text.
func parse(v reflect.Value, text string) error {
	switch bits := 64; v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("must be true or false")
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			return errors.New("must be a whole number")
		}
		v.SetInt(n)
	case reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, bits)
		if err != nil {
			return errors.New("must be a whole number, 0 or more")
		}
		v.SetUint(n)
	case reflect.Float64:
		x, err := strconv.ParseFloat(text, bits)
		if err != nil {
			return errors.New("must be a number")
		}
		v.SetFloat(x)
	default:
		panic("no flag is of the type " + v.Type().String())
	}
	return nil
}

// command makes a command of a pointer to its struct.
func (a *App) command(name, about string, of any) *cobra.Command {
	var args, flags []*field
	c := &cobra.Command{Use: name, Short: about, Args: cobra.ArbitraryArgs}
	c.Flags().SortFlags = false
	for _, f := range fieldsOf(reflect.ValueOf(of).Elem()) {
		if f.has("default") {
			if err := f.Set(f.expand("default")); err != nil {
				panic(err) // the grammar is broken
			}
			f.set = false
		}
		switch {
		case f.has("cmd"):
			sub := a.command(f.name, f.tag.Get("help"), f.value.Addr().Interface())
			sub.Hidden = f.has("hidden")
			c.AddCommand(sub)
		case f.has("arg"):
			args = append(args, f)
			if len(args) == 1 {
				c.ValidArgsFunction = f.completion()
			}
		default:
			flags = append(flags, f)
			flag := c.Flags().VarPF(f, f.name, "", "")
			flag.Hidden, flag.NoOptDefVal = f.has("hidden"), f.tag.Get("alone")
			if f.value.Kind() == reflect.Bool {
				flag.NoOptDefVal = "true"
			}
		}
	}
	c.SetHelpFunc(func(c *cobra.Command, _ []string) { printHelp(c, args, of) })
	c.RunE = func(c *cobra.Command, words []string) error {
		if c.HasSubCommands() {
			return misused(c, unknownCommand(c, words))
		}
		if err := errors.Join(assign(args, words), complete(flags)); err != nil {
			return misused(c, err)
		}
		return unwritten(a.carryOut(c.Context(), of), flags)
	}
	return c
}

// carryOut runs the command of a struct.
func (a *App) carryOut(ctx context.Context, of any) error {
	if v, ok := of.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return err
		}
	}
	if r, ok := of.(interface{ Run(*App) error }); ok {
		return r.Run(a)
	}
	err := of.(interface {
		Run(context.Context, *App) error
	}).Run(ctx, a)
	if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
		return errInterrupted // of a command that has nothing to add
	}
	return err
}

// misused adds to what is wrong with a command line where to read how it is meant.
func misused(c *cobra.Command, err error) error {
	return fmt.Errorf("%w; see %s --help", err, c.CommandPath())
}

// unknownCommand is the error of words that are none of a command's commands.
func unknownCommand(c *cobra.Command, words []string) error {
	var known []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	if len(words) == 0 {
		return fmt.Errorf("expected one of %s", strings.Join(known, ", "))
	}
	return fmt.Errorf("%s: no such command%s", words[0], config.DidYouMean(words[0], known))
}

// assign gives the words of a command line to arguments.
func assign(args []*field, words []string) error {
	for _, f := range args {
		switch {
		case len(words) == 0 && f.has("optional"):
			return nil
		case len(words) == 0:
			return fmt.Errorf("expected <%s>", f.name)
		}
		for len(words) > 0 && (!f.set || f.isList()) {
			if err := f.Set(words[0]); err != nil {
				return fmt.Errorf("%s: %w", words[0], err)
			}
			words = words[1:]
		}
	}
	if len(words) > 0 {
		return fmt.Errorf("unexpected argument %s", words[0])
	}
	return nil
}

// complete has the environment stand for flags, and demands what is required.
func complete(flags []*field) error {
	for _, f := range flags {
		for _, name := range f.list("env") {
			if text, ok := os.LookupEnv(name); ok && !f.set {
				if err := f.Set(text); err != nil {
					return fmt.Errorf("%s=%s: %w", name, text, err)
				}
			}
		}
		if f.has("required") && !f.set {
			return fmt.Errorf("missing --%s %s", f.name, f.Type())
		}
	}
	return nil
}

// flagError phrases what the parser finds wrong with a flag.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
		name := "--" + unknown.GetSpecifiedName()
		key, notKey := config.SettableKey(unknown.GetSpecifiedName())
		if notKey == nil && c.Flags().Lookup("set") != nil {
			err = fmt.Errorf("%s: no such flag; it is a key of the configuration: --set %s=VALUE", name, key)
			break
		}
		err = fmt.Errorf("%s: no such flag%s", name, config.DidYouMean(name, known))
	case errors.As(err, &invalid):
		err = fmt.Errorf("--%s %s: %w", invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap())
	}
	return misused(c, err)
}
