package replay

// Mode is a mode that a program can set; its number is its bit in checkpoints.
type Mode uint8

// Modes. Those of ECMA-48 first, then DEC's and xterm's private ones.
const (
	modeInsert      Mode = iota // 4 IRM
	modeNewline                 // 20 LNM
	modeAppKeys                 // ?1 DECCKM
	modeReverse                 // ?5 DECSCNM
	modeOrigin                  // ?6 DECOM
	modeWrap                    // ?7 DECAWM
	modeRepeat                  // ?8 DECARM
	modeMouseX10                // ?9
	modeBlink                   // ?12
	modeCursor                  // ?25 DECTCEM
	modeReverseWrap             // ?45
	modeAppKeypad               // ?66 DECNKM
	modeMouse                   // ?1000
	modeMouseDrag               // ?1002
	modeMouseMove               // ?1003
	modeFocus                   // ?1004
	modeMouseUTF8               // ?1005
	modeMouseSGR                // ?1006
	modeAltScroll               // ?1007
	modeMouseURXVT              // ?1015
	modeMousePixels             // ?1016
	modeMeta                    // ?1034
	modeAltSendsEsc             // ?1039
	modePaste                   // ?2004
	modeSync                    // ?2026
	modeColorScheme             // ?2031
	modeBackarrow               // ?67 DECBKM
	modeAlt                     // ?47, ?1047, ?1049: the alternate screen is shown
	modeCount
)

// modeNumbers pairs the modes that are nothing but a bit with their numbers.
var modeNumbers = [...]struct {
	number  int
	private bool
	mode    Mode
}{
	{4, false, modeInsert}, {20, false, modeNewline},
	{1, true, modeAppKeys}, {5, true, modeReverse}, {6, true, modeOrigin}, {7, true, modeWrap},
	{8, true, modeRepeat}, {9, true, modeMouseX10}, {12, true, modeBlink}, {25, true, modeCursor},
	{45, true, modeReverseWrap}, {66, true, modeAppKeypad}, {67, true, modeBackarrow},
	{1000, true, modeMouse}, {1002, true, modeMouseDrag}, {1003, true, modeMouseMove},
	{1004, true, modeFocus}, {1005, true, modeMouseUTF8}, {1006, true, modeMouseSGR},
	{1007, true, modeAltScroll}, {1015, true, modeMouseURXVT}, {1016, true, modeMousePixels},
	{1034, true, modeMeta}, {1039, true, modeAltSendsEsc}, {2004, true, modePaste},
	{2026, true, modeSync}, {2031, true, modeColorScheme},
}

// findMode returns the plain mode with a number.
func findMode(number int, private bool) (Mode, bool) {
	for _, m := range modeNumbers {
		if m.number == number && m.private == private {
			return m.mode, true
		}
	}
	return 0, false
}

type modeSet uint64

func (s modeSet) has(m Mode) bool { return s>>m&1 != 0 }

func (s *modeSet) set(m Mode, on bool) {
	if on {
		*s |= 1 << m
	} else {
		*s &^= 1 << m
	}
}

// modes is the modes and what XTSAVE keeps of them.
type modes struct {
	modeSet
	saved     modeSet
	otherKeys uint8 // XTMODKEYS resource 4
}

func defaultModes() modes {
	var m modes
	for _, on := range []Mode{modeWrap, modeRepeat, modeCursor, modeAltScroll} {
		m.set(on, true)
	}
	return m
}

// mouseModes exclude one another: setting one resets the others.
const mouseModes modeSet = 1<<modeMouseX10 | 1<<modeMouse | 1<<modeMouseDrag | 1<<modeMouseMove

// mouseFormats likewise.
const mouseFormats modeSet = 1<<modeMouseUTF8 | 1<<modeMouseSGR | 1<<modeMouseURXVT | 1<<modeMousePixels

// setMode carries out SM, RM, DECSET and DECRST for one parameter.
func (t *Terminal) setMode(number int, private, on bool) {
	if private && t.setScreenMode(number, on) {
		return
	}
	m, ok := findMode(number, private)
	if !ok {
		return
	}
	switch bit := modeSet(1) << m; {
	case on && bit&mouseModes != 0:
		t.modes.modeSet &^= mouseModes
	case on && bit&mouseFormats != 0:
		t.modes.modeSet &^= mouseFormats
	}
	t.modes.set(m, on)
	if m == modeOrigin {
		t.moveTo(0, 0)
	}
}

// setScreenMode carries out the modes that switch screens or save the cursor.
func (t *Terminal) setScreenMode(number int, on bool) bool {
	switch number {
	case 47, 1047:
		if on {
			t.enterAlternate()
		} else {
			t.leaveAlternate()
		}
	case 1048:
		if on {
			t.saveCursor()
		} else {
			t.restoreCursor()
		}
	case 1049:
		switch {
		case on && t.grid == &t.main:
			t.saveCursor()
			t.enterAlternate()
		case !on && t.grid == &t.main:
			t.restoreCursor()
		case !on:
			t.leaveAlternate()
			t.restoreCursor()
		}
	default:
		return false
	}
	return true
}

// enterAlternate shows the alternate screen, cleared. The cursor stays where it is.
func (t *Terminal) enterAlternate() {
	if t.grid != &t.main {
		return
	}
	c := &t.cur
	t.main.x, t.main.y, t.main.pend = c.x, c.y, c.pending
	if t.alt.rows == nil {
		t.alt.rows = newScreen(t.rows, t.offset).rows // what DECSC saved there stays
	}
	t.grid = &t.alt
	t.work += uint64(t.rows) * workRow
	for _, r := range t.alt.rows {
		t.blankRow(r)
	}
	t.modes.set(modeAlt, true)
	t.bump()
}

// leaveAlternate shows the main screen again. The cursor stays where it is.
func (t *Terminal) leaveAlternate() {
	if t.grid == &t.main {
		return
	}
	t.loseAlternate()
	t.alt.kitty = t.alt.kitty[:0]
	t.grid = &t.main
	t.modes.set(modeAlt, false)
	t.bump()
}

// Modes is what encoding input and rebuilding a screen have to know.
type Modes struct {
	set             modeSet
	ModifyOtherKeys int   // XTMODKEYS resource 4
	Kitty           uint8 // kitty keyboard flags in force
}

// Modes returns the modes in force.
func (t *Terminal) Modes() Modes {
	m := Modes{set: t.modes.modeSet, ModifyOtherKeys: int(t.modes.otherKeys)}
	if k := t.grid.kitty; len(k) > 0 {
		m.Kitty = k[len(k)-1]
	}
	return m
}

// Has says whether the mode with xterm's number is set. DEC private modes have
// private true. Unknown modes are not set.
func (m Modes) Has(number int, private bool) bool {
	switch {
	case private && (number == 47 || number == 1047 || number == 1049):
		return m.set.has(modeAlt)
	case private && number == 2027:
		return true
	}
	mode, ok := findMode(number, private)
	return ok && m.set.has(mode)
}

// BracketedPaste says whether pastes are bracketed (?2004).
func (m Modes) BracketedPaste() bool { return m.set.has(modePaste) }

// Set returns the numbers of the modes that are set, ECMA-48's and private ones,
// in the order of the terminal's table.
func (m Modes) Set() (ansi, private []int) {
	for _, n := range modeNumbers {
		switch {
		case !m.set.has(n.mode):
		case n.private:
			private = append(private, n.number)
		default:
			ansi = append(ansi, n.number)
		}
	}
	return ansi, private
}
