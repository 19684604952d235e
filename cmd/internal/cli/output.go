package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"looptape/capture"
	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
)

// printers print the results of some verbs for a person.
var printers = map[string]func(w, notes io.Writer, result []byte) error{
	"session.create":     printField("session"),
	"window.create":      printField("pane"),
	"grant.create":       printGrant,
	"grant.list":         printGrants,
	"doctor":             printDoctor,
	"pane.capture":       printScreen,
	"pane.capture_at":    printAt,
	"pane.capture_rows":  printRows,
	"pane.capture_since": printSince,
	"skill":              printField("text"),
	"pane.search":        printMatches,
	"pane.wait":          printWait,
	"pane.commands":      printCommands,
}

// itemPrinters print the items of some streams for a person. The items of all others
// carry bytes.
var itemPrinters = map[string]func(w io.Writer, item json.RawMessage) error{
	"events": printEvent,
}

// print writes the result of a verb to stdout.
func (a *app) print(v *manifest.Verb, result []byte) error {
	out := bufio.NewWriter(os.Stdout)
	err := a.printTo(out, v, result)
	if ferr := out.Flush(); err == nil {
		err = ferr
	}
	return err
}

func (a *app) printTo(out io.Writer, v *manifest.Verb, result []byte) error {
	if a.json {
		_, err := fmt.Fprintf(out, "%s\n", result)
		return err
	}
	if print := printers[v.Name]; print != nil {
		return print(out, os.Stderr, result)
	}
	if len(v.Result) > 0 && v.Filter && v.Result[0].Type == manifest.Array {
		return printTable(out, v.Result[0], result)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, result, "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s\n", indented.Bytes())
	return err
}

func printField(name string) func(w, notes io.Writer, result []byte) error {
	return func(w, _ io.Writer, result []byte) error {
		var fields map[string]any
		if err := json.Unmarshal(result, &fields); err != nil {
			return err
		}
		_, err := fmt.Fprintln(w, fields[name])
		return err
	}
}

func printScreen(w, _ io.Writer, result []byte) error {
	var r capture.ScreenResult
	if err := json.Unmarshal(result, &r); err != nil {
		return err
	}
	for line := range strings.SplitSeq(r.Text, "\n") {
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
	return nil
}

func printAt(w, notes io.Writer, result []byte) error {
	var r capture.AtResult
	if err := json.Unmarshal(result, &r); err != nil {
		return err
	}
	fmt.Fprintf(notes, "looptape: the screen at offset %d, as of %s\n", r.Offset, r.Time.Local().Format(time.RFC3339Nano))
	return printScreen(w, notes, result)
}

func printRows(w, notes io.Writer, result []byte) error {
	var r capture.RowsResult
	if err := json.Unmarshal(result, &r); err != nil {
		return err
	}
	for _, line := range r.Lines {
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
	if r.Next != nil {
		fmt.Fprintf(notes, "looptape: rows %d to %d of %d; the next page: --epoch %d --start %d --end %d\n", r.Start, *r.Next-1, r.End-1, r.Epoch, *r.Next, r.End)
	}
	return nil
}

func printMatches(w, notes io.Writer, result []byte) error {
	var r capture.SearchResult
	if err := json.Unmarshal(result, &r); err != nil {
		return err
	}
	for _, m := range r.Matches {
		fmt.Fprintf(w, "%d\t%s\n", m.Offset, m.Line)
	}
	if r.MissedBytes > 0 {
		fmt.Fprintf(notes, "looptape: %d bytes of the range are not in the log\n", r.MissedBytes)
	}
	if r.More {
		fmt.Fprintf(notes, "looptape: looked up to offset %d; go on with --cursor %s\n", r.Offset, r.Cursor)
	}
	return nil
}

func printSince(w, notes io.Writer, result []byte) error {
	var r capture.SinceResult
	if err := json.Unmarshal(result, &r); err != nil {
		return err
	}
	switch {
	case r.Missed && r.MissedBytes == 0:
		fmt.Fprintln(notes, "looptape: the place asked for is none of this stream: this is the screen")
	case r.Missed:
		fmt.Fprintf(notes, "looptape: %d bytes before this are not in the log\n", r.MissedBytes)
	}
	if r.Truncated {
		fmt.Fprintln(notes, "looptape: older text was left out")
	}
	if r.Rows != nil {
		for _, row := range *r.Rows {
			fmt.Fprintf(w, "%d\t%s\n", row.Row, row.Text)
		}
	} else if r.Data != nil {
		w.Write(*r.Data)
	} else if r.Text != nil {
		io.WriteString(w, *r.Text)
		if *r.Text != "" && !strings.HasSuffix(*r.Text, "\n") {
			fmt.Fprintln(w)
		}
	}
	more := ""
	if r.More {
		more = " (there is more)"
	}
	if r.Boundary != "" {
		more = " (the pane was respawned here: there is more of another program)"
	}
	if r.Closed {
		more = " (closed: nothing more can come)"
	}
	fmt.Fprintf(notes, "looptape: go on with --cursor %s%s\n", r.Cursor, more)
	return nil
}

// printTable prints a list as a table, its columns the fields of the manifest.
func printTable(w io.Writer, field manifest.Field, result []byte) error {
	var lists map[string]json.RawMessage
	if err := json.Unmarshal(result, &lists); err != nil {
		return err
	}
	var items []map[string]json.RawMessage
	if err := json.Unmarshal(lists[field.Name], &items); err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	var heads []string
	for _, f := range field.Fields {
		heads = append(heads, strings.ToUpper(f.Name))
	}
	fmt.Fprintln(table, strings.Join(heads, "\t"))
	for _, item := range items {
		var cells []string
		for _, f := range field.Fields {
			cells = append(cells, cell(f.Type, item[f.Name]))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	if lists["more"] != nil {
		fmt.Fprintln(table, "(there are more than fit)")
	}
	return table.Flush()
}

// cell prints a value in one line without the quotes of JSON. What programs put
// into it cannot reach the terminal as a control.
func cell(kind manifest.Type, raw json.RawMessage) string {
	if raw == nil {
		return "-"
	}
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return string(raw)
	}
	text := ""
	switch v := value.(type) {
	case string:
		text = v
		if at, err := time.Parse(time.RFC3339Nano, v); kind == manifest.Time && err == nil {
			text = at.Local().Format(time.RFC3339)
		}
	case []any:
		parts := make([]string, len(v))
		for i, p := range v {
			parts[i] = fmt.Sprint(p)
		}
		text = strings.Join(parts, " ")
	case map[string]any:
		for key, v := range v {
			text += fmt.Sprintf("%s %v", key, v)
		}
	default:
		text = string(raw)
	}
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7F && r < 0xA0 {
			return '\uFFFD'
		}
		return r
	}, text)
}

// stream calls a streaming verb and writes the bytes of its items to stdout, or
// to the file output by way of a temporary one: it is there when it is complete and
// on the disk, for its user only, and until then nothing is.
func (a *app) stream(ctx context.Context, c *wire.Client, v *manifest.Verb, params any, output string) error {
	if output == "" {
		return a.streamTo(ctx, c, v, params, os.Stdout)
	}
	if info, err := os.Lstat(output); err == nil && !info.Mode().IsRegular() {
		// A pipe, a device or a link is written to, not replaced.
		f, err := os.OpenFile(output, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return err
		}
		return errors.Join(a.streamTo(ctx, c, v, params, f), f.Close())
	}
	temp := filepath.Join(filepath.Dir(output), ".looptape-"+rand.Text())
	defer os.Remove(temp) // of an export that is left behind
	err := untilSignal(ctx, func(ctx context.Context) error {
		f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		defer os.Remove(temp)
		err = a.streamTo(ctx, c, v, params, f)
		if err == nil {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err == nil {
			err = os.Rename(temp, output)
		}
		return err
	})
	if e := new(fs.PathError); errors.As(err, &e) && e.Path == temp {
		return &fs.PathError{Op: e.Op, Path: output, Err: e.Err}
	}
	if e := new(os.LinkError); errors.As(err, &e) {
		return &fs.PathError{Op: e.Op, Path: output, Err: e.Err}
	}
	return err
}

func (a *app) streamTo(ctx context.Context, c *wire.Client, v *manifest.Verb, params any, w *os.File) error {
	out := bufio.NewWriterSize(w, 64<<10)
	bar := a.newProgress("exported", w)
	defer bar.clear()
	var from, to uint64 // of the stream
	result, err := c.Stream(ctx, v.Name, params, func(item json.RawMessage) error {
		if print := itemPrinters[v.Name]; print != nil || a.json {
			if a.json {
				print = printItem
			}
			return errors.Join(print(out, item), out.Flush())
		}
		var chunk struct {
			Data             []byte
			From, To, Offset *uint64
		}
		if err := json.Unmarshal(item, &chunk); err != nil {
			return err
		}
		if chunk.From != nil && chunk.To != nil {
			from, to = *chunk.From, *chunk.To
		}
		if chunk.Offset != nil {
			bar.show(max(*chunk.Offset, from)-from, to-from)
		}
		_, err := out.Write(chunk.Data)
		return err
	})
	bar.clear()
	if err == nil && a.json {
		_, err = fmt.Fprintf(out, "{\"ok\":%s}\n", result)
	}
	if ferr := out.Flush(); err == nil {
		err = ferr
	}
	if err != nil {
		return err
	}
	if v.Name == "pane.verify" {
		return verdict(result)
	}
	a.noteMissing(params, result)
	return nil
}

// printItem prints an item as the daemon sent it.
func printItem(w io.Writer, item json.RawMessage) error {
	_, err := fmt.Fprintf(w, "{\"item\":%s}\n", item)
	return err
}

// noteMissing says on stderr what an export could not hold.
func (a *app) noteMissing(params any, result json.RawMessage) {
	var q capture.ExportRequest
	var r capture.ExportResult
	asked, err := json.Marshal(params)
	if err = errors.Join(err, json.Unmarshal(asked, &q), json.Unmarshal(result, &r)); err != nil || a.json {
		return
	}
	evicted := uint64(0) // in front of what is left
	switch {
	case q.From != nil:
		evicted = r.From - min(r.From, *q.From)
	case q.FromTime == nil && q.Nth == nil:
		evicted = r.From
	}
	if evicted > 0 {
		fmt.Fprintf(os.Stderr, "looptape: %d bytes in front of offset %d are no longer retained\n", evicted, r.From)
	}
	if r.MissedBytes > evicted {
		fmt.Fprintf(os.Stderr, "looptape: up to %d bytes between offset %d and %d are not in the log\n", r.MissedBytes-evicted, r.From, r.Offset)
	}
}
