package capture

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"looptape/checkpoint"
	"looptape/replay"
)

// webPage is the transcript as one HTML page that needs nothing else: no script, nothing
// from elsewhere, and a policy that forbids both. Colours and attributes are classes
// of its style element, colours of 24 bits style attributes.
//
// What a program printed is text: escaped, and what has no look of its own, or would
// turn the text around it, is shown as its code point. Of hyperlinks those to http,
// https and mailto are links, with their destination as their title.
type webPage struct{ title string }

func (p webPage) head(dst []byte) []byte {
	dst = append(dst, `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width">
<title>`...)
	dst = append(appendVisible(dst, []byte(p.title), "(", ")"), "</title>\n<style>\n"...)
	dst = append(append(dst, styleSheet()...), "</style>\n</head>\n<body>\n<h1>"...)
	return append(appendVisible(dst, []byte(p.title), codePoint, "</b>"), "</h1>\n<pre dir=\"ltr\">\n"...)
}

func (p webPage) tail(dst []byte) []byte { return append(dst, "</pre>\n</body>\n</html>\n"...) }

func (p webPage) rule(dst []byte, text string) []byte {
	dst = append(dst, `<i class="rule">`...)
	return append(appendVisible(dst, []byte(text), codePoint, "</b>"), "</i>\n"...)
}

func (p webPage) line(dst []byte, l replay.Line) []byte {
	text := l.Text
	for _, run := range l.Runs {
		dst = appendSpan(dst, text[:run.Len], run.Style)
		text = text[run.Len:]
	}
	return append(dst, '\n')
}

// codePoint is what comes before a code point that is shown as its number.
const codePoint = `<b class="c">`

// appendSpan appends a text in one style.
func appendSpan(dst, text []byte, s replay.Style) []byte {
	link := s.Link
	if s.Link = ""; s == (replay.Style{}) && link == "" {
		return appendVisible(dst, text, codePoint, "</b>")
	}
	end := ""
	if href := linkTo(link); href != "" {
		dst = append(dst, `<a rel="noopener noreferrer nofollow" href="`...)
		dst = append(appendVisible(dst, []byte(href), "(", ")"), `" title="`...)
		dst = append(appendVisible(dst, []byte(href), "(", ")"), `">`...)
		end = "</a>"
	}
	if s == (replay.Style{}) {
		return append(appendVisible(dst, text, codePoint, "</b>"), end...)
	}
	dst = append(appendLook(dst, s), '>')
	dst = appendVisible(dst, text, codePoint, "</b>")
	return append(append(dst, "</span>"...), end...)
}

// appendLook appends a span's beginning without its end.
func appendLook(dst []byte, s replay.Style) []byte {
	fg, bg, set := s.Fg, s.Bg, ""
	names := make([]string, 0, 8)
	if s.Attrs&checkpoint.Inverse != 0 {
		fg, bg = bg, fg
		if fg == 0 {
			names = append(names, "fi")
		}
		if bg == 0 {
			names = append(names, "bi")
		}
	}
	named := func(prefix, property string, c checkpoint.Color) {
		switch {
		case c == 0:
		case c&checkpoint.ColorRGB != 0:
			set += property + ":" + hex(c) + ";"
		default:
			names = append(names, prefix+strconv.Itoa(int(c&0xFF)))
		}
	}
	if bg == 0 && s.Attrs&checkpoint.Inverse == 0 {
		named("f", "color", fg)
	} else {
		named("g", "color", fg)
	}
	named("b", "background", bg)
	for _, a := range attributes {
		if s.Attrs&a.attr != 0 {
			names = append(names, a.class)
		}
	}
	underline := int(s.Attrs & checkpoint.UnderlineMask >> checkpoint.UnderlineShift)
	lines := min(underline, 1)
	if s.Attrs&checkpoint.Strike != 0 {
		lines |= 2
	}
	if s.Attrs&checkpoint.Overline != 0 {
		lines |= 4
	}
	if lines > 0 {
		names = append(names, "d"+strconv.Itoa(lines))
	}
	if underline > 1 {
		names = append(names, "u"+strconv.Itoa(underline))
	}
	if s.Ul != 0 && underline > 0 {
		set += "text-decoration-color:" + hex(s.Ul) + ";"
	}
	dst = append(dst, "<span"...)
	if len(names) > 0 {
		dst = append(append(append(dst, ` class="`...), strings.Join(names, " ")...), '"')
	}
	if set != "" {
		dst = append(append(append(dst, ` style="`...), set...), '"')
	}
	return dst
}

var attributes = []struct {
	attr  uint16
	class string
}{
	{checkpoint.Bold, "bold"}, {checkpoint.Faint, "faint"}, {checkpoint.Italic, "italic"}, {checkpoint.Invisible, "hidden"},
}

// linkTo is the destination of a hyperlink, "" if it is not to be one.
func linkTo(uri string) string {
	scheme, _, _ := strings.Cut(uri, ":")
	switch strings.ToLower(scheme) {
	case "http", "https", "mailto":
	default:
		return ""
	}
	b := make([]byte, 0, len(uri))
	for _, c := range []byte(uri) {
		switch {
		case c < 0x20 || c == 0x7F:
			return ""
		case c == ' ' || c >= 0x80 || strings.IndexByte("\"<>\\^`{|}", c) >= 0:
			b = fmt.Appendf(b, "%%%02X", c)
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

// appendVisible appends text as HTML, with its invisible code points as U+XXXX between
// before and after.
func appendVisible(dst, text []byte, before, after string) []byte {
	for i := 0; i < len(text); {
		k := i
		for k < len(text) && !special[text[k]] {
			k++
		}
		dst = append(dst, text[i:k]...)
		if i = k; i == len(text) {
			break
		}
		if c := text[i]; c < utf8.RuneSelf {
			i++
			if e := entities[c]; e != "" {
				dst = append(dst, e...)
			} else {
				dst = fmt.Appendf(dst, "%sU+%04X%s", before, c, after)
			}
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		i += n
		if invisible(r) {
			dst = fmt.Appendf(dst, "%sU+%04X%s", before, r, after)
		} else {
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

// entities are the characters that HTML escapes.
var entities = [utf8.RuneSelf]string{'<': "&lt;", '>': "&gt;", '&': "&amp;", '"': "&quot;", '\'': "&#39;"}

// special are the bytes that do not stand for themselves.
var special = func() (s [256]bool) {
	for c := range s {
		s[c] = c < ' ' || c >= 0x7F || entities[c] != ""
	}
	return s
}()

// invisible says whether r has no look of its own and no part in the look of what is
// beside it: controls, those of bidirectional text, fillers, tags.
func invisible(r rune) bool {
	for _, in := range invisibles {
		if r >= in[0] && r <= in[1] {
			return true
		}
	}
	return false
}

var invisibles = [][2]rune{
	{0x80, 0x9F}, {0xAD, 0xAD}, {0x061C, 0x061C}, {0x115F, 0x1160}, {0x17B4, 0x17B5}, {0x180B, 0x180F}, {0x200B, 0x200B},
	{0x200E, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F}, {0x3164, 0x3164}, {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0},
	{0xFFF0, 0xFFFB}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
}

// hex is a colour as CSS has it.
func hex(c checkpoint.Color) string {
	if c&checkpoint.ColorRGB != 0 {
		return fmt.Sprintf("#%06x", uint32(c&0xFFFFFF))
	}
	level := func(n uint32) uint32 {
		if n == 0 {
			return 0
		}
		return 55 + 40*n
	}
	switch n := uint32(c & 0xFF); {
	case n < 16:
		return palette[n]
	case n < 232:
		n -= 16
		return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6))
	default:
		return fmt.Sprintf("#%02[1]x%02[1]x%02[1]x", 8+10*(n-232))
	}
}

// The first 16 colours: as backgrounds and on them, and as text on a dark and on a
// light page.
var (
	palette = [16]string{"#000000", "#cd3131", "#0dbc79", "#e5e510", "#2472c8", "#bc3fbc", "#11a8cd", "#e5e5e5",
		"#666666", "#f14c4c", "#23d18b", "#f5f543", "#3b8eea", "#d670d6", "#29b8db", "#ffffff"}
	onDark = [16]string{"#767676", "#f0605d", "#0dbc79", "#e5e510", "#4f9bea", "#cf6bcf", "#11a8cd", "#e5e5e5",
		"#8c8c8c", "#f58080", "#23d18b", "#f5f543", "#6db0f5", "#e08ae0", "#29b8db", "#ffffff"}
	onLight = [16]string{"#000000", "#b3261e", "#107c10", "#7a6400", "#0451a5", "#a0079f", "#05708a", "#555555",
		"#666666", "#cd3131", "#0f7a3a", "#8a6d00", "#0b5fc4", "#b0159f", "#067f9d", "#6e6e6e"}
)

// styleSheet is the same for all pages.
var styleSheet = sync.OnceValue(func() string {
	var b strings.Builder
	b.WriteString(`:root{color-scheme:light dark;--fg:#1a1a1a;--bg:#ffffff;--rule:#8a4b00}
body{margin:1em;background:var(--bg);color:var(--fg)}
h1{font:bold 1em sans-serif;overflow-wrap:anywhere}
pre{font:0.9em/1.3 monospace;white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate;margin:0}
a{color:inherit}
.rule{color:var(--rule)}
.c{font:0.8em monospace;border:1px solid;border-radius:2px;padding:0 1px}
.bold{font-weight:bold}.faint{opacity:0.65}.italic{font-style:italic}
.fi{color:var(--bg)}.bi{background:var(--fg)}
.u2{text-decoration-style:double}.u3{text-decoration-style:wavy}.u4{text-decoration-style:dotted}.u5{text-decoration-style:dashed}
`)
	for i, lines := range []string{"underline", "line-through", "underline line-through", "overline", "underline overline", "line-through overline", "underline line-through overline"} {
		fmt.Fprintf(&b, ".d%d{text-decoration-line:%s}", i+1, lines)
	}
	b.WriteByte('\n')
	for i := range checkpoint.Color(256) {
		color := hex(checkpoint.ColorIndexed | i)
		fmt.Fprintf(&b, ".g%d{color:%s}.b%d{background:%s}", i, color, i, color)
		if i >= 16 {
			fmt.Fprintf(&b, ".f%d{color:%s}", i, color)
		}
	}
	b.WriteByte('\n')
	for i, color := range onLight {
		fmt.Fprintf(&b, ".f%d{color:%s}", i, color)
	}
	b.WriteString("\n@media (prefers-color-scheme:dark){\n:root{--fg:#dddddd;--bg:#161616;--rule:#e0a458}\n")
	for i, color := range onDark {
		fmt.Fprintf(&b, ".f%d{color:%s}", i, color)
	}
	b.WriteString("\n}\n.hidden{color:transparent!important}\n")
	return b.String()
})
