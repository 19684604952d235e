package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"looptape/capture"
)

func printWait(w, notes io.Writer, result []byte) error {
	var r capture.WaitResult
	if err := json.Unmarshal(result, &r); err != nil {
		return err
	}
	if r.Missed {
		fmt.Fprintf(notes, "looptape: %d bytes behind the place asked for are not in the log\n", r.MissedBytes)
	}
	fmt.Fprint(w, r.Reason)
	if r.Exit != nil {
		fmt.Fprintf(w, " (exit %d)", *r.Exit)
	}
	if r.Matched != nil && r.Matched.Line != "" {
		fmt.Fprintf(w, ": %s", oneLine(r.Matched.Line))
	}
	fmt.Fprintln(w)
	fmt.Fprintf(notes, "looptape: at offset %d; go on with --cursor %s\n", r.Offset, r.Cursor)
	return nil
}

func printCommands(w, notes io.Writer, result []byte) error {
	var r capture.CommandsResult
	if err := json.Unmarshal(result, &r); err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "START\tEND\tEXIT\tTOOK\tCOMMAND")
	for _, c := range r.Commands {
		end, exit, took := "-", "-", "-"
		if c.End != nil {
			end = fmt.Sprint(*c.End)
		}
		if c.Exit != nil {
			exit = fmt.Sprint(*c.Exit)
		}
		if c.Seconds != nil {
			took = time.Duration(*c.Seconds * 1e9).Round(time.Millisecond).String()
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", c.Start, end, exit, took, oneLine(c.Command))
	}
	if r.More {
		defer fmt.Fprintf(notes, "looptape: older ones: --before %d\n", r.From)
	}
	return table.Flush()
}

// oneLine is a text that a program chose, harmless to a terminal.
func oneLine(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}
