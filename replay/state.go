package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"looptape/checkpoint"
)

// Semantics is the version of what bytes mean to a Terminal. It grows with every
// change after which the same stream gives another State. States of another
// version can be restored; only equal versions can be compared.
const Semantics = 4

// State returns everything the terminal knows but replies and events that were not
// taken. It shares no memory with the terminal.
func (t *Terminal) State() *checkpoint.State { return t.StateSince(0) }

// StateSince is State without the history's rows below row, a number in the current
// epoch, as far as their logical lines end below it. State.Complete puts them back
// from a State that has them: the one taken when row was Bounds().Active.
func (t *Terminal) StateSince(row uint64) *checkpoint.State {
	e := exporter{s: &checkpoint.State{
		Semantics: Semantics,
		Widths:    WidthTable,
		Size:      checkpoint.Size{Cols: t.cols, Rows: t.rows, Scrollback: t.hist.limit},
		Clock:     checkpoint.Clock{Offset: t.offset, Work: t.work, Epoch: t.epoch, Generation: t.generation},
		Region:    checkpoint.Region{Top: t.top, Bottom: t.bottom},
		OnAlt:     t.grid != &t.main,
		Tabs:      t.tabs.columns(),
		Lexer:     t.lex.export(),
		LinkRoom:  t.tab.room,
	}, styles: styleSet{list: []style{{}}}, links: map[linkKey]*link{}}
	s := e.s
	s.Styles = append(s.Styles, checkpoint.Style{})
	e.history(&t.hist, t.hist.base+row) // first, so that Complete needs the first styles only
	c := &t.cur
	s.Cursor = checkpoint.Cursor{X: c.x, Y: c.y, Pending: c.pending, Pen: e.style(c.pen), Charsets: c.chars, Style: c.shape}
	s.Modes = checkpoint.Modes{Bits: uint64(t.modes.modeSet), SavedBits: uint64(t.modes.saved), ModifyOtherKeys: t.modes.otherKeys}
	n := &t.names
	s.Names = checkpoint.Names{Title: n.title, Icon: n.icon, Cwd: n.cwd,
		Titles: append([]string(nil), n.titles...), Icons: append([]string(nil), n.icons...)}
	for _, p := range t.palette {
		s.Palette = append(s.Palette, checkpoint.PaletteEntry{Index: p.index, RGB: p.rgb})
	}
	s.Text.Last = string(c.last)
	if c.joins {
		s.Text.Joins, s.Text.Code = true, c.code
	}
	s.Main = e.screen(t, &t.main, true)
	if s.OnAlt {
		s.Main.X, s.Main.Y, s.Main.Pending = t.main.x, t.main.y, t.main.pend
	}
	s.Alt = e.screen(t, &t.alt, s.OnAlt)
	return s
}

// EncodeState appends the encoding of State to dst, which is of length 0, without as
// many of the history's oldest rows as it takes for at most most bytes. It returns the
// State that it encoded, and whether it is whole. The screens alone take less than
// store.MaxCheckpoint.
func (t *Terminal) EncodeState(dst []byte, most int) (_ []byte, s *checkpoint.State, whole bool) {
	s, whole = t.State(), true
	dst = checkpoint.Encode(dst, s)
	for keep := t.hist.rows(); len(dst) > most && keep > 0; {
		keep, whole = keep/4, false
		s = t.StateSince(t.hist.end - t.hist.base - uint64(keep))
		dst = checkpoint.Encode(dst[:0], s)
	}
	return dst, s, whole
}

// exporter numbers styles and links in the order in which they come.
type exporter struct {
	s      *checkpoint.State
	styles styleSet
	links  map[linkKey]*link // of links that say the same, one
}

func (e *exporter) style(s style) int {
	if s.link != nil {
		l := e.links[s.link.linkKey]
		if l == nil {
			l = &link{s.link.linkKey, uint64(len(e.links))}
			e.links[l.linkKey] = l
			e.s.Links = append(e.s.Links, checkpoint.Link{ID: l.id, URI: l.uri})
		}
		s.link = l
	}
	n := int(e.styles.number(s))
	if n == len(e.s.Styles) {
		c := checkpoint.Style{Fg: s.fg, Bg: s.bg, Ul: s.ul, Attrs: s.attrs}
		if s.link != nil {
			c.Link = int(s.link.number) + 1
		}
		e.s.Styles = append(e.s.Styles, c)
	}
	return n
}

func (e *exporter) screen(t *Terminal, s *screen, shown bool) checkpoint.Screen {
	out := checkpoint.Screen{Kitty: append([]uint8(nil), s.kitty...)}
	if v := s.saved; v != nil {
		out.Saved = &checkpoint.Saved{X: v.x, Y: v.y, Pending: v.pending, Pen: e.style(v.pen), Charsets: v.chars, Origin: v.origin}
	}
	if !shown {
		return out
	}
	h := history{linkBudget: math.MaxInt}
	for _, r := range s.rows {
		c := h.begin(r.written, r.used)
		h.finish(t.tab.pack(&h, c, r, t.cols))
	}
	out.Rows = e.rows(nil, h.chunks, 0)
	return out
}

// history exports the rows from index since on, and all if some are kept only for
// the open line.
func (e *exporter) history(h *history, since uint64) {
	out := &e.s.History
	out.First = h.oldest - h.base
	from := h.oldest
	if h.open {
		// The newest line's text is needed whole, however little of it can be read.
		c := h.last()
		k := len(c.rows) - 1
		for k > 0 && c.rows[k-1].flags&packedWrapped != 0 {
			k--
		}
		from = min(from, c.first+uint64(k))
	}
	out.Hidden = int(h.oldest - from)
	if since = min(since, h.end); from == h.oldest && since > from {
		for from = since; from > h.oldest && h.wrapped(from-1); {
			from--
		}
		out.First = from - h.base
	}
	if from < h.end {
		out.Rows = e.rows(make([]checkpoint.Row, 0, h.end-from), h.chunks[h.find(from):], from)
	}
}

// rows appends the rows of chunks from index first on.
func (e *exporter) rows(dst []checkpoint.Row, chunks []*chunk, first uint64) []checkpoint.Row {
	for _, c := range chunks {
		text := append([]byte(nil), c.text...)
		numbers := make([]int, len(c.styles))
		for i := range numbers {
			numbers[i] = -1
		}
		k := 0
		if first > c.first {
			k = int(first - c.first)
		}
		for ; k < len(c.rows); k++ {
			p := &c.rows[k]
			end := p.text + p.size
			r := checkpoint.Row{Text: text[p.text:end:end], Width: int(p.width), Written: p.written}
			r.Flags = p.flags & (packedWrapped | packedReported)
			r.Flags |= textFlags(r.Text)
			r.Runs = e.runs(c, k, numbers, len(r.Text))
			dst = append(dst, r)
		}
	}
	return dst
}

// textFlags says what is in packed text.
func textFlags(p []byte) uint8 {
	flags := uint8(checkpoint.RowASCII)
	for i := asciiRun(p); i < len(p); i++ {
		switch b := p[i]; {
		case b == clusterMark:
			flags = flags&^checkpoint.RowASCII | checkpoint.RowClusters
		case b >= 0x80:
			flags &^= checkpoint.RowASCII
		case b == 0:
			flags |= checkpoint.RowVoids
		default:
			i += asciiRun(p[i+1:])
		}
	}
	return flags
}

func (e *exporter) runs(c *chunk, k int, numbers []int, size int) []checkpoint.Run {
	packed := c.runsOf(k)
	if len(packed) == 0 {
		return nil
	}
	var runs []checkpoint.Run
	for len(packed) > 0 && size > 0 {
		n, local, rest := nextRun(packed)
		packed = rest
		n = min(n, size)
		size -= n
		if numbers[local] < 0 {
			numbers[local] = e.style(c.styles[local])
		}
		if last := len(runs) - 1; last >= 0 && runs[last].Style == numbers[local] {
			runs[last].Len += n
		} else {
			runs = append(runs, checkpoint.Run{Len: n, Style: numbers[local]})
		}
	}
	if last := len(runs) - 1; last >= 0 && runs[last].Style == 0 {
		runs = runs[:last]
	}
	return runs
}

// ErrState is what Restore returns for a State that no terminal can have made.
var ErrState = errors.New("replay: impossible terminal state")

// Restore returns a terminal in the state s. It shares no memory with s.
func Restore(s *checkpoint.State) (*Terminal, error) {
	im := importer{s: s}
	cols, rows := clampSize(s.Size.Cols, s.Size.Rows)
	if cols != s.Size.Cols || rows != s.Size.Rows {
		return nil, fmt.Errorf("%w: size %dx%d", ErrState, s.Size.Cols, s.Size.Rows)
	}
	if s.Size.Scrollback < 0 || s.Size.Scrollback > MaxScrollback {
		return nil, fmt.Errorf("%w: scrollback %d", ErrState, s.Size.Scrollback)
	}
	t := New(cols, rows, s.Size.Scrollback)
	im.t = t
	im.styleTable()
	im.history()
	im.screen(&t.main, &s.Main, true)
	im.screen(&t.alt, &s.Alt, s.OnAlt)
	im.rest()
	t.tab.setLimit(0)
	if im.err != nil {
		return nil, im.err
	}
	return t, nil
}

// importer fills a new terminal; the first thing that cannot be is its error.
type importer struct {
	s     *checkpoint.State
	t     *Terminal
	links []link
	hints styleHints
	err   error
}

func (im *importer) check(ok bool, what string) bool {
	if !ok && im.err == nil {
		im.err = fmt.Errorf("%w: %s", ErrState, what)
	}
	return ok
}

// styleTable checks the styles. They are not converted before they are needed: there
// may be very many.
func (im *importer) styleTable() {
	im.links = make([]link, len(im.s.Links))
	for i, l := range im.s.Links {
		im.links[i] = link{linkKey{l.ID, l.URI}, uint64(i)}
	}
	im.t.tab.made = uint64(len(im.links))
	im.hints = make(styleHints, len(im.s.Styles))
	for i := range im.s.Styles {
		im.check(uint(im.s.Styles[i].Link) <= uint(len(im.links)), "link number")
	}
	im.check(im.style(0) == style{}, "default style")
}

func (im *importer) style(n int) style {
	if n == 0 && len(im.s.Styles) == 0 || !im.check(n >= 0 && n < len(im.s.Styles), "style number") {
		return style{}
	}
	v := &im.s.Styles[n]
	s := style{fg: v.Fg, bg: v.Bg, ul: v.Ul, attrs: v.Attrs}
	if n := v.Link; n > 0 && n <= len(im.links) && im.links[n-1].uri != "" {
		s.link = &im.links[n-1]
	}
	return s
}

func (im *importer) history() {
	t, in := im.t, &im.s.History
	h := &t.hist
	if !im.check(in.Hidden >= 0 && in.Hidden <= len(in.Rows) && in.First < 1<<62, "history bounds") {
		return
	}
	if !im.check(len(in.Rows)-in.Hidden <= h.limit, "more history than scrollback") {
		return
	}
	h.base, h.end = uint64(in.Hidden), in.First
	h.oldest = in.First + uint64(in.Hidden)
	for i := range in.Rows {
		if i == in.Hidden {
			h.links, h.bytes = 0, 0 // what cannot be read does not count
		}
		im.row(h, &in.Rows[i])
	}
	if in.Hidden == len(in.Rows) {
		h.links, h.bytes = 0, 0
	}
	h.evict()
}

// row appends r to h.
func (im *importer) row(h *history, r *checkpoint.Row) {
	width, ok := asciiRun(r.Text), true
	flags := uint8(packedASCII)
	if width < len(r.Text) {
		width, ok = packedWidth(r.Text, im.t.cols)
		if flags = textFlags(r.Text); flags&packedASCII == 0 {
			flags |= packedOpens
		}
	}
	if !im.check(ok && width <= im.t.cols, "row text") {
		width = 0
	}
	c := h.begin(r.Written, len(r.Text))
	c.text = append(c.text, r.Text...)
	var runs runCounter
	for _, run := range r.Runs {
		if !im.check(run.Len >= 0 && run.Style >= 0 && run.Style < len(im.s.Styles), "style run") {
			break
		}
		local := uint32(0)
		if run.Style > 0 {
			s := im.style(run.Style)
			local = im.hints.local(c, uint32(run.Style), &s)
		}
		c.runs = binary.AppendUvarint(binary.AppendUvarint(c.runs, uint64(run.Len)), uint64(local))
		h.links += c.styles[local].link.size()
		runs.add(&c.styles[local])
	}
	h.finish(c, width, flags|r.Flags&(packedWrapped|packedReported), loadOf(runs.n))
}

// packedWidth returns the columns of packed text on a screen of cols columns, and
// whether it is well formed.
func packedWidth(p []byte, cols int) (int, bool) {
	width := 0
	for len(p) > 0 {
		if n := asciiRun(p); n > 0 {
			width += n
			p = p[n:]
			continue
		}
		size, w := 1, 1
		switch {
		case p[0] != 0 && p[0] < ' ' || p[0] == 0x7F:
			return 0, false
		case p[0] == clusterMark:
			if len(p) < 3 || p[1]&0x7F == 0 || len(p) < 2+int(p[1]&0x7F) || !utf8.Valid(p[2:2+int(p[1]&0x7F)]) {
				return 0, false
			}
			size, w = unit(p)
		case p[0] >= 0x80:
			var r rune
			if r, size = utf8.DecodeRune(p); r == utf8.RuneError && size == 1 || r < 0xA0 {
				return 0, false
			}
			_, w = unit(p)
		}
		width += min(w, cols)
		p = p[size:]
	}
	return width, true
}

func (im *importer) screen(dst *screen, in *checkpoint.Screen, shown bool) {
	t := im.t
	dst.kitty = append([]uint8(nil), in.Kitty...)
	im.check(len(in.Kitty) <= maxKitty, "keyboard stack")
	if v := in.Saved; v != nil {
		im.check(v.X >= 0 && v.X < MaxSide && v.Y >= 0 && v.Y < MaxSide, "saved cursor")
		dst.saved = &saved{v.X, v.Y, v.Pending, im.style(v.Pen), v.Charsets, v.Origin}
	}
	if !shown || !im.check(len(in.Rows) == t.rows, "number of rows") {
		return
	}
	*dst = screen{rows: newScreen(t.rows, 0).rows, saved: dst.saved, kitty: dst.kitty, x: in.X, y: in.Y, pend: in.Pending}
	im.check(in.X >= 0 && in.X < t.cols && in.Y >= 0 && in.Y < t.rows, "cursor of a hidden screen")
	var h history
	runs := 0
	for i := range in.Rows {
		runs += len(in.Rows[i].Runs)
	}
	t.tab.styles.reserve(min(runs, len(im.s.Styles)))
	for i := range in.Rows {
		im.row(&h, &in.Rows[i])
		if im.err != nil {
			return
		}
		c := h.last()
		unpack(&t.tab, dst.rows[i], c, len(c.rows)-1, t.cols)
	}
}

// rest imports what is neither rows nor styles.
func (im *importer) rest() {
	t, s := im.t, im.s
	t.offset, t.work = s.Clock.Offset, s.Clock.Work
	t.moved = t.offset
	t.epoch, t.generation = s.Clock.Epoch, s.Clock.Generation
	t.tab.room = s.LinkRoom
	im.check(t.tab.room >= -linkStep && t.tab.room <= MaxLinks, "link room")
	if s.OnAlt {
		t.grid = &t.alt
	}
	c := s.Cursor
	im.check(c.X >= 0 && c.X < t.cols && c.Y >= 0 && c.Y < t.rows, "cursor")
	t.cur = cursor{x: c.X, y: c.Y, pending: c.Pending, chars: c.Charsets, shape: c.Style,
		last: []byte(s.Text.Last), joins: s.Text.Joins, code: s.Text.Code}
	im.check(len(s.Text.Last) <= MaxCluster+utf8.UTFMax && utf8.ValidString(s.Text.Last), "last character")
	if t.cur.joins && im.check(s.Text.Code >= 0 && s.Text.Code <= utf8.MaxRune, "code point") {
		t.cur.class = classOf(s.Text.Code)
	}
	t.setPen(im.style(c.Pen))
	t.top, t.bottom = s.Region.Top, s.Region.Bottom
	im.check(t.top >= 0 && t.top <= t.bottom && t.bottom < t.rows, "region")
	t.modes = modes{modeSet: modeSet(s.Modes.Bits), saved: modeSet(s.Modes.SavedBits), otherKeys: s.Modes.ModifyOtherKeys}
	t.tabs.clear()
	for _, x := range s.Tabs {
		if im.check(x >= 0 && x < t.cols, "tab stop") {
			t.tabs.set(x, true)
		}
	}
	n := s.Names
	t.names = names{n.Title, n.Icon, n.Cwd, append([]string(nil), n.Titles...), append([]string(nil), n.Icons...)}
	im.check(len(n.Titles) <= maxTitles && len(n.Icons) <= maxTitles, "title stack")
	for _, p := range s.Palette {
		if im.check(p.Index >= 0 && p.Index <= colorCursor, "palette index") {
			t.palette.set(p.Index, p.RGB)
		}
	}
	if err := t.lex.restore(&s.Lexer); err != nil && im.err == nil {
		im.err = fmt.Errorf("%w: %w", ErrState, err)
	}
}
