package guide

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
)

// Help is the text of a verb's command: what it does, answers and fails with.
// Its flags describe themselves.
func Help(v *manifest.Verb) string {
	var b strings.Builder
	b.WriteString(fill(v.Summary+". "+v.Notes, 79))
	if need := needs(v); need != "" {
		b.WriteString("\n" + need + "\n")
	}
	if v.Item != nil {
		b.WriteString("\nItems of the stream:\n")
		writeFields(&b, v.Item)
	}
	b.WriteString("\nResult:\n")
	writeFields(&b, v.Result)
	if v.Failures != nil {
		b.WriteString("\nErrors, with their exit codes:\n")
		table := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
		for _, f := range v.Failures {
			fmt.Fprintf(table, "  %s\t%d\t%s\n", f.Code, (&wire.Error{Code: f.Code}).Exit(), f.When)
		}
		table.Flush()
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// needs says which right v needs, and on what.
func needs(v *manifest.Verb) string {
	on := "the " + string(v.On)
	if v.On == manifest.Any {
		on = "*"
	}
	switch {
	case v.Right == manifest.None:
		return ""
	case v.Filter:
		return fmt.Sprintf("Shows what the caller has the right to %s.", v.Right)
	case v.RightIf != nil:
		return fmt.Sprintf("Needs the right %s on %s, or %s if %s is %s.", v.Right, on, v.RightIf.Right, v.RightIf.Param, v.RightIf.Value)
	}
	return fmt.Sprintf("Needs the right %s on %s.", v.Right, on)
}

func writeFields(b *strings.Builder, fields []manifest.Field) {
	var padded strings.Builder
	table := tabwriter.NewWriter(&padded, 0, 8, 2, ' ', 0)
	eachField("", fields, func(name string, f *manifest.Field) {
		fmt.Fprintf(table, "  %s\t%s\t%s\n", name, fieldType(f), meaning(f.Summary, f.Choices))
	})
	table.Flush()
	for line := range strings.Lines(padded.String()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
}

// eachField calls do with each field and those within it, whose names are paths:
// bounds.end, panes[].pane.
func eachField(prefix string, fields []manifest.Field, do func(name string, f *manifest.Field)) {
	for i := range fields {
		f := &fields[i]
		name := prefix + f.Name
		do(name, f)
		if f.Type == manifest.Array {
			name += "[]"
		}
		eachField(name+".", f.Fields, do)
	}
}

func fieldType(f *manifest.Field) string {
	text := string(f.Type)
	switch {
	case f.Type == manifest.Array && f.Fields != nil:
		text = "array of objects"
	case f.Type == manifest.Array:
		text = "array of " + plural(f.Elem)
	}
	if f.Optional {
		text += ", optional"
	}
	return text
}

func plural(t manifest.Type) string { return string(t) + "s" }

// meaning is a summary and what there is to choose from.
func meaning(summary string, choices []string) string {
	if choices == nil {
		return summary
	}
	if summary != "" {
		summary += ": "
	}
	return summary + strings.Join(choices, ", ")
}

// fill breaks a text into lines of at most width characters.
func fill(text string, width int) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case column == 0:
		case column+1+n > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String() + "\n"
}
