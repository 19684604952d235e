package replay

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
)

// ErrKey is what EncodeKey returns for a name that it does not know.
var ErrKey = errors.New("replay: unknown key")

// encoder is the one emulator of x/vt in a process: making one takes a millisecond
// and megabytes. It has one cell and is told nothing but modes.
type encoder struct {
	mu    sync.Mutex // held for one encoding; guards all below
	e     *vt.Emulator
	modes Modes
	out   []byte
}

var theEncoder encoder

// inputModes are the modes that x/vt's encodings depend on.
var inputModes = []int{1, 9, 66, 1000, 1002, 1003, 1006, 2004}

// encode returns what x/vt's emulator sends to a program for f under modes m.
func encode(m Modes, f func(e *vt.Emulator)) []byte {
	en := &theEncoder
	en.mu.Lock()
	defer en.mu.Unlock()
	if en.e == nil {
		en.e = vt.NewEmulator(1, 1)
		go en.collect()
	}
	for _, n := range inputModes {
		if on := m.Has(n, true); on != en.modes.Has(n, true) {
			final := "l"
			if on {
				final = "h"
			}
			en.e.WriteString("\x1b[?" + strconv.Itoa(n) + final)
		}
	}
	en.modes = m
	en.out = en.out[:0]
	f(en.e)
	// The emulator's pipe has no buffer: that this write is over means that collect
	// has come back for it, and so is done with all before.
	en.e.InputPipe().Write(nil)
	return append([]byte(nil), en.out...)
}

// collect gathers what the emulator sends. It runs as long as the process and
// waits in Read; encode waits for it.
func (en *encoder) collect() {
	buf := make([]byte, 4096)
	for {
		n, err := en.e.Read(buf)
		if err != nil {
			return
		}
		if n > 0 {
			en.out = append(en.out, buf[:n]...)
		}
	}
}

// EncodeKey returns the bytes that a key sends to a program under modes m. Keys are
// named as tmux and Emacs name them: a character, or Enter (RET), Tab (TAB), BTab,
// Space (SPC), Escape (ESC), BSpace (DEL), Up, Down, Left, Right, Home, End, PPage
// (PageUp, PgUp, prior), NPage (PageDown, PgDn, next), IC (Insert), DC (Delete), F1
// to F24, KP0 to KP9 and KPEnter, with Emacs' angle brackets or without, behind any
// of the prefixes C-, M-, S- and ^.
//
// Modified function and cursor keys, which x/vt does not know, have xterm's form
// (CSI 1 ; modifier A). The kitty keyboard protocol is not used: programs that turn
// it on take the common forms too.
func EncodeKey(name string, m Modes) ([]byte, error) {
	key, err := parseKey(name)
	if err != nil {
		return nil, err
	}
	if s, ok := specialKeys[key.Code]; ok {
		if mod := modifier(key.Mod); mod > 1 && key.Code != uv.KeyTab {
			return []byte(s.modified(mod)), nil
		}
		if m.Has(1, true) && (key.Code == uv.KeyHome || key.Code == uv.KeyEnd) {
			return []byte("\x1bO" + string(s.final)), nil
		}
		if key.Code > uv.KeyF12 {
			return []byte(s.plain()), nil
		}
	}
	b := encode(m, func(e *vt.Emulator) { e.SendKey(uv.KeyPressEvent(key)) })
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: %q has no encoding", ErrKey, name)
	}
	return b, nil
}

// parseKey reads a key's name.
func parseKey(name string) (uv.Key, error) {
	var mod uv.KeyMod
	rest := name
	for utf8.RuneCountInString(rest) > 1 {
		switch {
		case strings.HasPrefix(rest, "C-") && len(rest) > 2:
			mod |= uv.ModCtrl
		case strings.HasPrefix(rest, "M-") && len(rest) > 2:
			mod |= uv.ModAlt
		case strings.HasPrefix(rest, "S-") && len(rest) > 2:
			mod |= uv.ModShift
		case rest[0] == '^':
			mod |= uv.ModCtrl
			rest = rest[1:]
			continue
		default:
			return namedKey(name, rest, mod)
		}
		rest = rest[2:]
	}
	r, size := utf8.DecodeRuneInString(rest)
	if size == 0 || r == utf8.RuneError || r < ' ' || r == 0x7F {
		return uv.Key{}, fmt.Errorf("%w: %q", ErrKey, name)
	}
	return characterKey(r, mod), nil
}

// namedKey returns the key called rest.
func namedKey(name, rest string, mod uv.KeyMod) (uv.Key, error) {
	word := rest
	if strings.HasPrefix(word, "<") && strings.HasSuffix(word, ">") {
		word = word[1 : len(word)-1]
	}
	code, ok := keyNames[strings.ToLower(word)]
	if n, err := strconv.Atoi(strings.TrimLeft(word, "Ff")); !ok && err == nil && len(word) > 1 && word[0]|0x20 == 'f' && n >= 1 && n <= 24 {
		code, ok = uv.KeyF1+rune(n-1), true
	}
	if !ok {
		return uv.Key{}, fmt.Errorf("%w: %q", ErrKey, name)
	}
	if strings.EqualFold(word, "btab") || strings.EqualFold(word, "backtab") {
		mod |= uv.ModShift
	}
	switch {
	case code == ' ':
		return characterKey(' ', mod), nil
	case code == uv.KeyBackspace && mod&uv.ModCtrl != 0:
		return characterKey('h', mod), nil
	case code == uv.KeyTab:
		mod &^= uv.ModCtrl
	case code == uv.KeyEnter || code == uv.KeyEscape || code == uv.KeyBackspace:
		mod &= uv.ModAlt // the other modifiers make no difference
	}
	return uv.Key{Code: code, Mod: mod}, nil
}

// characterKey returns the key that types r.
func characterKey(r rune, mod uv.KeyMod) uv.Key {
	if mod&uv.ModCtrl == 0 {
		if mod&uv.ModShift != 0 && r >= 'a' && r <= 'z' {
			r -= 'a' - 'A'
		}
		return uv.Key{Code: r, Text: string(r), Mod: mod &^ uv.ModShift}
	}
	mod &^= uv.ModShift
	switch {
	case r >= 'A' && r <= 'Z':
		r += 'a' - 'A'
	case r == '@' || r == '2':
		r = ' '
	case r == '/' || r == '-':
		r = '_'
	case r == '~' || r == '6':
		r = '^'
	case r == '?' || r == '8':
		return uv.Key{Code: uv.KeyBackspace, Mod: mod &^ uv.ModCtrl}
	case r >= '3' && r <= '5':
		r = '[' + r - '3'
	case r == '7':
		r = '_'
	}
	return uv.Key{Code: r, Mod: mod}
}

var keyNames = map[string]rune{
	"enter": uv.KeyEnter, "ret": uv.KeyEnter, "return": uv.KeyEnter, "cr": uv.KeyEnter,
	"tab": uv.KeyTab, "btab": uv.KeyTab, "backtab": uv.KeyTab,
	"space": ' ', "spc": ' ',
	"escape": uv.KeyEscape, "esc": uv.KeyEscape,
	"bspace": uv.KeyBackspace, "backspace": uv.KeyBackspace, "del": uv.KeyBackspace,
	"up": uv.KeyUp, "down": uv.KeyDown, "left": uv.KeyLeft, "right": uv.KeyRight,
	"home": uv.KeyHome, "end": uv.KeyEnd,
	"ppage": uv.KeyPgUp, "pageup": uv.KeyPgUp, "pgup": uv.KeyPgUp, "prior": uv.KeyPgUp,
	"npage": uv.KeyPgDown, "pagedown": uv.KeyPgDown, "pgdn": uv.KeyPgDown, "next": uv.KeyPgDown,
	"ic": uv.KeyInsert, "insert": uv.KeyInsert,
	"dc": uv.KeyDelete, "delete": uv.KeyDelete, "deletechar": uv.KeyDelete,
	"kpenter": uv.KeyKpEnter, "kp0": uv.KeyKp0, "kp1": uv.KeyKp1, "kp2": uv.KeyKp2, "kp3": uv.KeyKp3,
	"kp4": uv.KeyKp4, "kp5": uv.KeyKp5, "kp6": uv.KeyKp6, "kp7": uv.KeyKp7, "kp8": uv.KeyKp8, "kp9": uv.KeyKp9,
	"kp*": uv.KeyKpMultiply, "kp+": uv.KeyKpPlus, "kp-": uv.KeyKpMinus, "kp.": uv.KeyKpDecimal, "kp=": uv.KeyKpEqual,
}

// special is a key that xterm encodes as CSI number ~ or CSI final.
type special struct {
	number int
	final  byte
}

var specialKeys = map[rune]special{
	uv.KeyUp: {1, 'A'}, uv.KeyDown: {1, 'B'}, uv.KeyRight: {1, 'C'}, uv.KeyLeft: {1, 'D'},
	uv.KeyHome: {1, 'H'}, uv.KeyEnd: {1, 'F'}, uv.KeyTab: {1, 'Z'},
	uv.KeyInsert: {2, '~'}, uv.KeyDelete: {3, '~'}, uv.KeyPgUp: {5, '~'}, uv.KeyPgDown: {6, '~'},
	uv.KeyF1: {1, 'P'}, uv.KeyF2: {1, 'Q'}, uv.KeyF3: {1, 'R'}, uv.KeyF4: {1, 'S'},
	uv.KeyF5: {15, '~'}, uv.KeyF6: {17, '~'}, uv.KeyF7: {18, '~'}, uv.KeyF8: {19, '~'},
	uv.KeyF9: {20, '~'}, uv.KeyF10: {21, '~'}, uv.KeyF11: {23, '~'}, uv.KeyF12: {24, '~'},
	uv.KeyF13: {25, '~'}, uv.KeyF14: {26, '~'}, uv.KeyF15: {28, '~'}, uv.KeyF16: {29, '~'},
	uv.KeyF17: {31, '~'}, uv.KeyF18: {32, '~'}, uv.KeyF19: {33, '~'}, uv.KeyF20: {34, '~'},
	uv.KeyF21: {42, '~'}, uv.KeyF22: {43, '~'}, uv.KeyF23: {44, '~'}, uv.KeyF24: {45, '~'},
}

func (s special) plain() string { return "\x1b[" + strconv.Itoa(s.number) + string(s.final) }

func (s special) modified(mod int) string {
	return "\x1b[" + strconv.Itoa(s.number) + ";" + strconv.Itoa(mod) + string(s.final)
}

// modifier is xterm's number for modifiers: 1 and 1, 2, 4 for Shift, Alt, Control.
func modifier(mod uv.KeyMod) int {
	n := 1
	if mod&uv.ModShift != 0 {
		n++
	}
	if mod&uv.ModAlt != 0 {
		n += 2
	}
	if mod&uv.ModCtrl != 0 {
		n += 4
	}
	return n
}

const (
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// EncodePaste returns the bytes that pasting text sends under modes m: bracketed if
// the program asked for it, with every bracket in text taken out, so that text
// cannot break out; line ends become CR, as the Enter key sends it.
func EncodePaste(text string, m Modes) []byte {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\r"), "\n", "\r")
	if m.BracketedPaste() {
		text = withoutBrackets(text)
	}
	return encode(m, func(e *vt.Emulator) { e.Paste(text) })
}

// withoutBrackets takes out the marks of a paste, also those that only come about
// as others are taken out.
func withoutBrackets(text string) string {
	out := make([]byte, 0, len(text))
	for i := range len(text) {
		out = append(out, text[i])
		if text[i] == '~' && (bytes.HasSuffix(out, []byte(pasteEnd)) || bytes.HasSuffix(out, []byte(pasteStart))) {
			out = out[:len(out)-len(pasteEnd)]
		}
	}
	return string(out)
}

// MouseAction is what a mouse did.
type MouseAction uint8

// Mouse actions.
const (
	MousePress MouseAction = iota
	MouseRelease
	MouseMotion
)

// Mouse is a mouse event at a cell, counted from 0. Button is X11's number: 1 left,
// 2 middle, 3 right, 4..7 wheel up, down, left, right; 0 is none (motion).
type Mouse struct {
	Action           MouseAction
	Button           int
	Col, Row         int
	Shift, Alt, Ctrl bool
}

// EncodeMouse returns the bytes that a mouse event sends under modes m: nothing if
// the program did not ask for it, or if it stands beyond what its format can say
// (column or row 222 without SGR coordinates).
func EncodeMouse(ev Mouse, m Modes) []byte {
	if !m.reports(ev) || ev.Col < 0 || ev.Row < 0 || ev.Button < 0 || ev.Button > 11 {
		return nil
	}
	sgr := m.set.has(modeMouseSGR)
	if !sgr && (ev.Col > 222 || ev.Row > 222) {
		return nil
	}
	mouse := uv.Mouse{X: ev.Col, Y: ev.Row, Button: uv.MouseButton(ev.Button)}
	if ev.Shift {
		mouse.Mod |= uv.ModShift
	}
	if ev.Alt {
		mouse.Mod |= uv.ModAlt
	}
	if ev.Ctrl {
		mouse.Mod |= uv.ModCtrl
	}
	b := encode(m, func(e *vt.Emulator) {
		switch {
		case ev.Action == MouseMotion:
			e.SendMouse(uv.MouseMotionEvent(mouse))
		case ev.Action == MouseRelease && sgr:
			e.SendMouse(uv.MouseReleaseEvent(mouse))
		case ev.Action == MouseRelease:
			mouse.Button = uv.MouseNone // the old format does not say which
			e.SendMouse(uv.MouseReleaseEvent(mouse))
		case ev.Button >= 4 && ev.Button <= 7:
			e.SendMouse(uv.MouseWheelEvent(mouse))
		default:
			e.SendMouse(uv.MouseClickEvent(mouse))
		}
	})
	if sgr {
		return b
	}
	// The old format is a byte a coordinate; x/vt writes them as UTF-8.
	raw := make([]byte, 0, len(b))
	for _, r := range string(b) {
		raw = append(raw, byte(r))
	}
	return raw
}

// reports says whether the program asked for an event.
func (m Modes) reports(ev Mouse) bool {
	switch {
	case m.set.has(modeMouseMove):
		return true
	case m.set.has(modeMouseDrag):
		return ev.Action != MouseMotion || ev.Button != 0
	case m.set.has(modeMouse):
		return ev.Action != MouseMotion
	case m.set.has(modeMouseX10):
		return ev.Action == MousePress
	}
	return false
}
