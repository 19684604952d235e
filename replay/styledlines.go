package replay

import (
	"bytes"

	"looptape/checkpoint"
)

// Style is what a stretch of text looks like. Attrs are those of package checkpoint;
// Link is the URI of a hyperlink (OSC 8) as the program gave it, "" for none.
type Style struct {
	Fg, Bg, Ul checkpoint.Color
	Attrs      uint16
	Link       string
}

// Run is a stretch of a line's text in one style: its length in bytes.
type Run struct {
	Len   int
	Style Style
}

// StyleLines says whether the line sink is to have the styles of the lines. Without
// them (the default) lines cost less.
func (t *Terminal) StyleLines(on bool) { t.out.styled = on }

// AppendSGR appends the SGR sequence that makes text look as s, whatever was before.
func (s Style) AppendSGR(dst []byte) []byte {
	plain := style{ul: s.Ul, attrs: s.Attrs}
	dst = append(append(dst, "\x1b["...), plain.sgr()...)
	return append(appendColor(appendColor(dst, s.Fg, 30), s.Bg, 40), 'm')
}

func (s *style) public() Style {
	p := Style{Fg: s.fg, Bg: s.bg, Ul: s.ul, Attrs: s.attrs &^ checkpoint.Protected}
	if s.link != nil {
		p.Link = s.link.uri
	}
	return p
}

// begin readies the scratch of the sink for a line.
func (o *output) begin() { o.line, o.runs = o.line[:0], o.runs[:0] }

// report gives the sink the line in the scratch, up to the last column that shows
// something. One that shows nothing is reported only if blank.
func (o *output) report(offset uint64, blank bool) {
	l := Line{Text: bytes.TrimRight(o.line, " "), Offset: offset}
	if o.styled {
		l.Text, l.Runs = trimRuns(o.line, o.runs)
	}
	if len(l.Text) > 0 || blank {
		o.sink(l)
	}
}

// trimRuns takes trailing blanks away that look like nothing.
func trimRuns(text []byte, runs []Run) ([]byte, []Run) {
	for len(runs) > 0 {
		last := &runs[len(runs)-1]
		if last.Style.showsBlanks() {
			break
		}
		from := len(text) - last.Len
		last.Len = len(bytes.TrimRight(text[from:], " "))
		if text = text[:from+last.Len]; last.Len > 0 {
			break
		}
		runs = runs[:len(runs)-1]
	}
	return text, runs
}

// showsBlanks says whether a blank in style s looks unlike none.
func (s *Style) showsBlanks() bool {
	return s.Bg != 0 || s.Attrs&(checkpoint.Inverse|checkpoint.Strike|checkpoint.Overline|checkpoint.UnderlineMask) != 0
}

// extendRuns makes the next n bytes of the text have style s.
func extendRuns(runs []Run, n int, s Style) []Run {
	if k := len(runs); k > 0 && runs[k-1].Style == s {
		runs[k-1].Len += n
	} else if n > 0 {
		runs = append(runs, Run{n, s})
	}
	return runs
}

// appendRuns appends the styles of the first n columns of r, whose text is size bytes
// long.
func (tb *table) appendRuns(runs []Run, r *row, n, size int) []Run {
	if r.styled {
		var scratch [MaxCluster]byte
		cells := r.cells[:min(n, r.used)]
		for i := 0; i < len(cells); {
			num, length := cells[i]>>cellStyle, 0
			for ; i < len(cells) && cells[i]>>cellStyle == num; i++ {
				if cells[i]&^(cellText&0x7F) == num<<cellStyle { // the half of all text
					length++
				} else {
					length += len(tb.appendText(scratch[:0], cells[i]))
				}
			}
			runs = extendRuns(runs, length, tb.styles.list[num].public())
			size -= length
		}
	}
	return extendRuns(runs, size, Style{})
}

// appendStyled appends the text of row k of c, and its styles.
func (o *output) appendStyled(c *chunk, k int) {
	text, runs := c.textOf(k), c.runsOf(k)
	for len(text) > 0 {
		n, num := len(text), uint64(0)
		if len(runs) > 0 {
			n, num, runs = nextRun(runs)
			n = min(n, len(text))
		}
		at := len(o.line)
		o.line = appendPacked(o.line, text[:n], c.rows[k].flags)
		o.runs = extendRuns(o.runs, len(o.line)-at, c.styles[num].public())
		text = text[n:]
	}
}
