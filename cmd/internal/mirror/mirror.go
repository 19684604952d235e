// Package mirror shows a Terminal on the terminal of a person: on its alternate screen,
// so that what was there comes back, and of whatever size it has.
//
// A [Mirror] knows what it has shown, and makes the bytes that lead from there to what
// a Terminal shows now: the rows that changed, the cursor, the title, and those modes
// that decide what the person's terminal sends for keys, the mouse and pastes. It asks
// the terminal for nothing, and sends nothing of a stream: a program in a pane reaches
// the person's terminal only as cells and as those modes.
//
// Where the Terminal is larger than the person's, its left columns are shown, and of
// its rows those around the cursor. Colours that a program redefines (OSC 4, 10, 11),
// notifications and the clipboard are not passed on. A row that changes is drawn
// as a whole.
package mirror

import (
	"bytes"
	"strconv"
	"strings"

	"looptape/replay"
)

// Mirror is what one person's terminal shows. The zero Mirror is one behind Enter.
type Mirror struct {
	// ReadOnly says that what the terminal sends goes nowhere, so that it need not send
	// what a program asks for.
	ReadOnly bool

	cols, rows int      // of the person's terminal; 0 before anything was shown
	top        int      // the row of the Terminal that is shown first
	shown      [][]byte // what each row was drawn with
	cursor     replay.Cursor
	hidden     bool
	title      string
	modes      map[int]bool // private modes that are set
	otherKeys  int
	kitty      uint8
	scratch    []byte
}

// passed are the private modes that are passed on: application keys, reverse video, the
// mouse and its formats, focus, meta keys, pastes.
var passed = []int{1, 5, 9, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 1034, 1039, 2004}

// reverse is the one of passed that is no matter of input.
const reverse = 5

// Sequences whose number is not one of passed.
const (
	keypad    = 66   // DECNKM, by DECPAM and DECPNM
	altScroll = 1007 // only while the alternate screen is shown
)

// Enter are the bytes that begin: what the terminal shows is put aside, nothing wraps,
// and what Leave restores is saved.
const Enter = "\x1b[?1049h\x1b[22;2t\x1b[?1007s\x1b[?1007l\x1b[>0u\x1b[?7l\x1b[m\x1b[H\x1b[2J"

// Leave appends the bytes that end: everything is as it was before Enter.
func (m *Mirror) Leave(dst []byte) []byte {
	for _, n := range passed {
		if m.modes[n] {
			dst = appendMode(dst, n, false)
		}
	}
	return append(dst, "\x1b>\x1b[>4m\x1b[<1u\x1b[?1007r\x1b[?7h\x1b[0 q\x1b[?25h\x1b[23;2t\x1b[m\x1b[?1049l"...)
}

// Append appends the bytes that lead to what t shows, on a terminal of the given size,
// and nothing if that is shown already. A note, if it is not empty, stands in the last
// row.
func (m *Mirror) Append(dst []byte, t *replay.Terminal, cols, rows int, note string) []byte {
	head := len(dst)
	dst = append(dst, "\x1b[?2026h\x1b[?25l"...)
	body := len(dst)
	if cols != m.cols || rows != m.rows {
		m.cols, m.rows = cols, rows
		m.shown = make([][]byte, rows)
		dst = append(dst, "\x1b[m\x1b[2J"...)
	}
	dst = m.appendModes(dst, t)
	dst = m.appendTitle(dst, t.Title())
	dst = m.appendRows(dst, t, note)
	cursor, hidden := m.place(t)
	drawn := len(dst) > body
	if !drawn && cursor == m.cursor && hidden == m.hidden {
		return dst[:head]
	}
	if cursor.Shape != m.cursor.Shape {
		dst = append(strconv.AppendInt(append(dst, "\x1b["...), int64(cursor.Shape), 10), " q"...)
	}
	m.cursor, m.hidden = cursor, hidden
	dst = appendPlace(dst, cursor.Row, cursor.Col)
	if !hidden {
		dst = append(dst, "\x1b[?25h"...)
	}
	return append(dst, "\x1b[?2026l"...)
}

// place is where the cursor of t is shown, and that it is not.
func (m *Mirror) place(t *replay.Terminal) (c replay.Cursor, hidden bool) {
	c = t.Cursor()
	c.Row -= m.top
	hidden = !c.Visible || c.Col >= m.cols
	c.Col = min(c.Col, m.cols-1)
	c.Visible, c.Pending = false, false
	return c, hidden
}

// appendRows draws the rows that are not shown yet.
func (m *Mirror) appendRows(dst []byte, t *replay.Terminal, note string) []byte {
	height := t.Bounds().Rows
	row := t.Cursor().Row
	m.top = min(max(m.top, row-m.rows+1), row, max(height-m.rows, 0))
	for y := range m.rows {
		b := m.scratch[:0]
		switch {
		case y == m.rows-1 && note != "":
			b = appendNote(b, note, m.cols)
		case m.top+y < height:
			b = t.AppendRow(b, m.top+y, m.cols)
		default:
			b = append(b, "\x1b[K"...)
		}
		m.scratch = b
		if m.shown[y] == nil && string(b) == "\x1b[K" {
			m.shown[y] = bytes.Clone(b) // the screen was cleared
		}
		if !bytes.Equal(m.shown[y], b) {
			dst = append(appendPlace(dst, y, 0), b...)
			m.shown[y] = append(m.shown[y][:0], b...)
		}
	}
	return dst
}

func appendNote(dst []byte, note string, cols int) []byte {
	note = " " + plain(note) + " "
	if len(note) > cols {
		note = note[:cols]
	}
	dst = append(append(append(dst, "\x1b[7m"...), note...), "\x1b[m"...)
	if len(note) < cols {
		dst = append(dst, "\x1b[K"...)
	}
	return dst
}

// plain is s with a question mark for what is not printable ASCII.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

func appendPlace(dst []byte, row, col int) []byte {
	dst = strconv.AppendInt(append(dst, "\x1b["...), int64(row+1), 10)
	dst = strconv.AppendInt(append(dst, ';'), int64(col+1), 10)
	return append(dst, 'H')
}

func appendMode(dst []byte, n int, on bool) []byte {
	dst = strconv.AppendInt(append(dst, "\x1b[?"...), int64(n), 10)
	if on {
		return append(dst, 'h')
	}
	return append(dst, 'l')
}

func (m *Mirror) appendTitle(dst []byte, title string) []byte {
	if title == m.title {
		return dst
	}
	m.title = title
	title = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7F && r < 0xA0 {
			return -1
		}
		return r
	}, title)
	return append(append(append(dst, "\x1b]2;"...), title...), "\x1b\\"...)
}

// appendModes passes modes on: first those that end, since some exclude each other.
func (m *Mirror) appendModes(dst []byte, t *replay.Terminal) []byte {
	modes := t.Modes()
	if m.modes == nil {
		m.modes = make(map[int]bool)
	}
	for _, on := range []bool{false, true} {
		for _, n := range passed {
			if m.ReadOnly && n != reverse {
				continue
			}
			if modes.Has(n, true) == on && m.modes[n] != on {
				m.modes[n] = on
				dst = appendMode(dst, n, on)
			}
		}
	}
	if m.ReadOnly {
		return dst
	}
	if on := modes.Has(keypad, true); on != m.modes[keypad] {
		m.modes[keypad] = on
		dst = append(dst, 0x1B, ">="[b2i(on)])
	}
	if on := modes.Has(altScroll, true) && t.Bounds().Screen == replay.Alternate; on != m.modes[altScroll] {
		m.modes[altScroll] = on
		dst = appendMode(dst, altScroll, on)
	}
	if modes.ModifyOtherKeys != m.otherKeys {
		m.otherKeys = modes.ModifyOtherKeys
		dst = append(strconv.AppendInt(append(dst, "\x1b[>4;"...), int64(m.otherKeys), 10), 'm')
	}
	if modes.Kitty != m.kitty {
		m.kitty = modes.Kitty
		dst = append(strconv.AppendInt(append(dst, "\x1b[="...), int64(m.kitty), 10), ";1u"...)
	}
	return dst
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
