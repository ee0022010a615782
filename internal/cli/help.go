package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Widths of help in columns, where a terminal is not narrower, and of the first of two columns.
const (
	helpWidth  = 90
	firstWidth = 26
)

// printHelp prints what a command does, and its arguments, flags and commands.
func printHelp(c *cobra.Command, args []*field, of any) {
	w := c.OutOrStdout()
	width := helpWidth
	if columns := terminalColumns(w); columns > 0 {
		width = min(width, columns)
	}
	usage, rows := c.CommandPath(), [][2]string{}
	for _, f := range args {
		word := "<" + f.name + ">"
		rows = append(rows, [2]string{word, f.expand("help")})
		if f.isList() {
			word += " ..."
		}
		if f.has("optional") {
			word = "[" + word + "]"
		}
		usage += " " + word
	}
	if c.HasSubCommands() {
		usage += " <command>"
	}
	fmt.Fprintf(w, "Usage: %s [flags]\n\n", usage)
	printProse(w, c.Short, width)
	if h, ok := of.(interface{ Help() string }); ok {
		fmt.Fprintln(w)
		printProse(w, h.Help(), width)
	}
	printRows(w, "Arguments", rows, width)
	printRows(w, "Flags", flagRows(c), width)
	printRows(w, "Commands", commandRows(c, ""), width)
}

func flagRows(c *cobra.Command) (rows [][2]string) {
	row := func(flag *pflag.Flag) {
		f, ok := flag.Value.(*field)
		switch {
		case flag.Hidden:
		case !ok: // the parser's own
			rows = append(rows, [2]string{"-" + flag.Shorthand + ", --" + flag.Name, flag.Usage})
		default:
			word := "    --" + f.name
			switch {
			case f.has("alone"):
				word += "[=" + f.Type() + "]"
			case flag.NoOptDefVal == "":
				word += " " + f.Type()
			}
			rows = append(rows, [2]string{word, f.expand("help")})
		}
	}
	c.InheritedFlags().VisitAll(row)
	c.LocalFlags().VisitAll(row)
	return rows
}

// commandRows lists the commands that have none of their own, at any depth.
func commandRows(c *cobra.Command, above string) (rows [][2]string) {
	for _, sub := range c.Commands() {
		switch {
		case !sub.IsAvailableCommand():
		case sub.HasSubCommands():
			rows = append(rows, commandRows(sub, above+sub.Name()+" ")...)
		default:
			rows = append(rows, [2]string{above + sub.Name(), sub.Short})
		}
	}
	return rows
}

// printRows prints words and what they mean, in two columns.
func printRows(w io.Writer, title string, rows [][2]string, width int) {
	if len(rows) == 0 {
		return
	}
	first := 0
	for _, r := range rows {
		first = min(firstWidth, max(first, len(r[0])))
	}
	fmt.Fprintf(w, "\n%s:\n", title)
	for _, r := range rows {
		word := r[0]
		if len(word) > first {
			fmt.Fprintf(w, "  %s\n", word)
			word = ""
		}
		for _, line := range fill(r[1], width-first-4) {
			fmt.Fprintf(w, "  %-*s  %s\n", first, word, line)
			word = ""
		}
	}
}

// printProse prints paragraphs, filled, and lines that are indented as they are.
func printProse(w io.Writer, text string, width int) {
	var paragraph strings.Builder
	end := func() {
		for _, line := range fill(paragraph.String(), width) {
			fmt.Fprintln(w, line)
		}
		paragraph.Reset()
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if line != "" && line[0] != ' ' {
			paragraph.WriteString(line + " ")
			continue
		}
		end()
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
	end()
}

// fill breaks a text into lines of a width.
func fill(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
