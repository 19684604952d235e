package replay

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// Limits of what operating system commands set. What is longer is ignored.
const (
	MaxTitle  = 1024 // bytes of a title, icon name, cwd or mark
	MaxLink   = 2048 // bytes of a hyperlink's URI
	maxLinkID = 256  // bytes of its id
	maxTitles = 10   // depth of the title stacks
)

// names are the strings that a program set about itself.
type names struct {
	title, icon, cwd string
	titles, icons    []string
}

// osc carries out an operating system command. Answers end as the query does.
func (t *Terminal) osc(data []byte, end rune) {
	t.work += workOSC
	num, rest, _ := bytes.Cut(data, []byte{';'})
	n, err := strconv.Atoi(string(num))
	if err != nil {
		return
	}
	terminator := "\x1b\\"
	if end == 0x07 {
		terminator = "\x07"
	}
	switch n {
	case 0, 1, 2:
		text, ok := cleanText(rest, MaxTitle)
		if !ok {
			return
		}
		if n != 2 {
			t.names.icon = text
		}
		if n != 1 {
			t.names.title = text
			t.event(TitleChanged, text)
		}
	case 4:
		t.oscPalette(string(rest), terminator)
	case 7:
		if text, ok := cleanText(rest, MaxTitle); ok {
			t.names.cwd = text
			t.event(CwdChanged, text)
		}
	case 8:
		t.oscLink(string(rest))
	case 9:
		t.oscNotify(rest)
	case 10, 11, 12:
		t.oscColors(n, string(rest), terminator)
	case 104:
		t.oscResetPalette(string(rest))
	case 110, 111, 112:
		t.palette.remove(colorForeground + n - 110)
	case 133:
		t.oscMark(rest)
	case 777:
		if kind, text, ok := bytes.Cut(rest, []byte{';'}); ok && string(kind) == "notify" {
			t.oscNotify(text)
		}
	}
}

// cleanText returns b as valid UTF-8 without controls.
func cleanText(b []byte, limit int) (string, bool) {
	if len(b) > limit {
		return "", false
	}
	if asciiRun(b) == len(b) {
		return string(b), true
	}
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7F && r < 0xA0 {
			return -1
		}
		return r
	}, s), true
}

// oscLink is OSC 8: parameters (of which id counts), a semicolon, a URI.
func (t *Terminal) oscLink(s string) {
	params, uri, ok := strings.Cut(s, ";")
	if !ok {
		return
	}
	t.work += workLink + uint64(len(s))*workURI
	uri, ok = cleanText([]byte(uri), MaxLink)
	if !ok {
		uri = ""
	}
	id := ""
	for p := range strings.SplitSeq(params, ":") {
		if v, found := strings.CutPrefix(p, "id="); found {
			id, _ = cleanText([]byte(v), maxLinkID)
		}
	}
	if uri != "" && !t.roomForLink() {
		uri = ""
	}
	pen := t.cur.pen
	pen.link = t.tab.link(id, uri)
	t.setPen(pen)
	if uri != "" {
		t.event(Hyperlink, uri)
	}
}

// linkStep is the least number of hyperlinks between two counts of those on the
// screens. It takes a look at each cell.
const linkStep = 512

// roomForLink reports whether another hyperlink may begin. The links on the screens
// are counted when as many have begun as there was room for then; if there is hardly
// any, the next linkStep are refused. All of it is in the State.
func (t *Terminal) roomForLink() bool {
	if t.tab.room == 0 {
		t.compact()
		t.work += uint64(t.cols) * uint64(t.rows)
		if t.tab.room = MaxLinks - len(t.tab.links); t.tab.room < linkStep {
			t.tab.room = -linkStep
		}
	}
	if t.tab.room < 0 {
		t.tab.room++
		return false
	}
	t.tab.room--
	return true
}

// oscNotify is OSC 9 and OSC 777;notify. OSC 9;4 is a progress report.
func (t *Terminal) oscNotify(b []byte) {
	if bytes.HasPrefix(b, []byte("4;")) {
		return
	}
	if text, ok := cleanText(b, MaxTitle); ok {
		t.event(Notification, text)
	}
}

// oscMark is OSC 133, the marks of shell integration.
func (t *Terminal) oscMark(b []byte) {
	if len(b) == 0 || len(b) > 1 && b[1] != ';' {
		return
	}
	rest, ok := cleanText(b[min(2, len(b)):], MaxTitle)
	if !ok {
		rest = ""
	}
	switch b[0] {
	case 'A', 'P':
		t.event(PromptStart, rest)
	case 'B':
		t.event(CommandStart, rest)
	case 'C':
		t.event(OutputStart, rest)
	case 'D':
		t.event(CommandEnd, rest)
	}
}

// Places of the dynamic colours behind the palette of 256.
const (
	colorForeground = 256 + iota // OSC 10
	colorBackground              // OSC 11
	colorCursor                  // OSC 12
)

// palette is the colours that a program set, ascending by index: at most 259.
type palette []paletteColor

type paletteColor struct {
	index int
	rgb   uint32
}

func (p palette) find(index int) (int, bool) {
	return slices.BinarySearchFunc(p, index, func(c paletteColor, i int) int { return c.index - i })
}

func (p *palette) set(index int, rgb uint32) {
	i, ok := p.find(index)
	if !ok {
		*p = slices.Insert(*p, i, paletteColor{index: index})
	}
	(*p)[i].rgb = rgb
}

func (p *palette) remove(index int) {
	if i, ok := p.find(index); ok {
		*p = slices.Delete(*p, i, i+1)
	}
}

// get returns the colour at index: what was set, else xterm's default.
func (p palette) get(index int) uint32 {
	if i, ok := p.find(index); ok {
		return p[i].rgb
	}
	return defaultColor(index)
}

// oscPalette is OSC 4: pairs of an index and a colour, or a ? to ask for it.
func (t *Terminal) oscPalette(s, terminator string) {
	for s != "" {
		var num, spec string
		num, s, _ = strings.Cut(s, ";")
		spec, s, _ = strings.Cut(s, ";")
		i, err := strconv.Atoi(num)
		if err != nil || i < 0 || i > 255 {
			continue
		}
		if spec == "?" {
			t.reply("\x1b]4;" + itoa(i) + ";" + formatColor(t.palette.get(i)) + terminator)
		} else if rgb, ok := parseColor(spec); ok {
			t.work += workPalette
			t.palette.set(i, rgb)
		}
	}
}

// oscColors is OSC 10, 11 and 12: each further argument is for the next of them.
func (t *Terminal) oscColors(n int, s, terminator string) {
	for spec := range strings.SplitSeq(s, ";") {
		if n > 12 {
			return
		}
		index := colorForeground + n - 10
		if spec == "?" {
			t.reply("\x1b]" + itoa(n) + ";" + formatColor(t.palette.get(index)) + terminator)
		} else if rgb, ok := parseColor(spec); ok {
			t.work += workPalette
			t.palette.set(index, rgb)
		}
		n++
	}
}

// oscResetPalette is OSC 104: the given palette colours, or all.
func (t *Terminal) oscResetPalette(s string) {
	if s == "" {
		t.palette = slices.DeleteFunc(t.palette, func(c paletteColor) bool { return c.index < 256 })
		return
	}
	for num := range strings.SplitSeq(s, ";") {
		if i, err := strconv.Atoi(num); err == nil && i < 256 {
			t.palette.remove(i)
		}
	}
}

// formatColor writes a colour as xterm answers it: 16 bits a channel.
func formatColor(rgb uint32) string {
	const digits = "0123456789abcdef"
	b := []byte("rgb:")
	for shift := 16; shift >= 0; shift -= 8 {
		hi, lo := digits[rgb>>shift>>4&0xF], digits[rgb>>shift&0xF]
		b = append(b, hi, lo, hi, lo)
		if shift > 0 {
			b = append(b, '/')
		}
	}
	return string(b)
}

// parseColor reads XParseColor's rgb:r/g/b and #rgb forms, 1 to 4 digits a channel.
func parseColor(s string) (uint32, bool) {
	var parts []string
	if rest, ok := strings.CutPrefix(s, "rgb:"); ok {
		parts = strings.Split(rest, "/")
	} else if rest, ok := strings.CutPrefix(s, "#"); ok && len(rest)%3 == 0 && len(rest) > 0 {
		n := len(rest) / 3
		parts = []string{rest[:n], rest[n : 2*n], rest[2*n:]}
	}
	if len(parts) != 3 {
		return 0, false
	}
	var rgb uint32
	for _, p := range parts {
		if len(p) == 0 || len(p) > 4 {
			return 0, false
		}
		v, err := strconv.ParseUint(p, 16, 16)
		if err != nil {
			return 0, false
		}
		if s[0] == '#' {
			v <<= 4 * (4 - len(p)) // the most significant digits
			v >>= 8
		} else {
			v = v * 255 / (1<<(4*len(p)) - 1)
		}
		rgb = rgb<<8 | uint32(v)
	}
	return rgb, true
}

// defaultColor is xterm's palette; text is light grey on black.
func defaultColor(index int) uint32 {
	switch {
	case index < 16:
		return baseColors[index]
	case index < 232:
		index -= 16
		return cube(index/36)<<16 | cube(index/6%6)<<8 | cube(index%6)
	case index < 256:
		v := uint32(8 + 10*(index-232))
		return v<<16 | v<<8 | v
	case index == colorBackground:
		return 0x000000
	}
	return 0xE5E5E5
}

func cube(v int) uint32 {
	if v == 0 {
		return 0
	}
	return uint32(55 + 40*v)
}

var baseColors = [16]uint32{
	0x000000, 0xCD0000, 0x00CD00, 0xCDCD00, 0x0000EE, 0xCD00CD, 0x00CDCD, 0xE5E5E5,
	0x7F7F7F, 0xFF0000, 0x00FF00, 0xFFFF00, 0x5C5CFF, 0xFF00FF, 0x00FFFF, 0xFFFFFF,
}
