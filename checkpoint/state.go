package checkpoint

// State is everything that a terminal knows after a prefix of its stream: plain
// data without behaviour. Two terminals that were fed the same bytes, cut in
// whatever way, give equal States (compare their encodings).
type State struct {
	Semantics uint32 // version of the terminal's semantics that produced it
	Widths    string // name and version of the width table that produced it
	Size      Size
	Clock     Clock
	Styles    []Style // Styles[0] is the default pen; rows and pens refer by index
	Links     []Link  // Style.Link refers by index+1
	History   History
	Main, Alt Screen
	OnAlt     bool
	Cursor    Cursor
	Region    Region
	Modes     Modes
	Tabs      []int // columns of the tab stops, ascending
	Names     Names
	Palette   []PaletteEntry // colours set by OSC 4 and 10..12, ascending by Index
	Text      TextState
	Lexer     Lexer

	// LinkRoom is how many hyperlinks may still begin before those on the screens are
	// counted again; below 0, how many are refused before that.
	LinkRoom int
}

// Size is the geometry: columns, rows, and history rows kept.
type Size struct{ Cols, Rows, Scrollback int }

// Clock says where in the stream and in the row numbering a State stands.
type Clock struct {
	Offset     uint64 // stream bytes consumed
	Work       uint64 // cells touched, rows reflowed and bytes fed so far
	Epoch      uint32 // row epoch
	Generation uint32 // programs that took the place of another so far
}

// Color is 0 for the default, else its kind in bits 24..31 and its value below.
type Color uint32

// Kinds of Color.
const (
	ColorIndexed Color = 1 << 24 // value is a palette index, 0..255
	ColorRGB     Color = 2 << 24 // value is 0xRRGGBB
)

// Attributes of a Style. Underline styles are numbers in three bits.
const (
	Bold uint16 = 1 << iota
	Faint
	Italic
	Blink
	RapidBlink
	Inverse
	Invisible
	Strike
	Overline
	Protected           // DECSCA
	UnderlineShift = 12 // bits 12..14: 0 none, 1 single, 2 double, 3 curly, 4 dotted, 5 dashed
	UnderlineMask  = 7 << UnderlineShift
)

// Style is what a cell looks like apart from its text.
type Style struct {
	Fg, Bg, Ul Color
	Attrs      uint16
	Link       int // index+1 into State.Links; 0 is no link
}

// Link is a hyperlink (OSC 8).
type Link struct{ ID, URI string }

// Row is one physical row. Text holds the cells from the left, without trailing
// cells that were never written (but a wrapped row is full). A cell is 0x00 if it
// was never written, one code point, or a mark: 0xFF, a byte (bits 0..6 the length
// of the cluster, bit 7 set if it takes two columns), the cluster.
type Row struct {
	Text    []byte
	Runs    []Run  // styles from the left; nothing if all of Text is Styles[0]
	Width   int    // columns that Text takes
	Written uint64 // stream offset behind the last write to the row
	Flags   uint8
}

// Flags of a Row.
const (
	RowWrapped  uint8 = 1 << iota // continues in the next row
	RowReported                   // its text was given to the line sink already
	RowClusters                   // Text contains cluster marks
	RowASCII                      // each byte of Text is one column
	RowVoids                      // Text contains cells that were never written
)

// Run is Len bytes of Text in the style Styles[Style].
type Run struct{ Len, Style int }

// History is the rows above the main screen, oldest first.
type History struct {
	First  uint64 // number in the epoch of Rows[Hidden], the oldest row that can be read
	Hidden int    // rows before it that are kept only because their line goes on
	Rows   []Row
}

// Screen is one of the two screens.
type Screen struct {
	Rows  []Row  // exactly Size.Rows, or none if it never held anything
	Saved *Saved // DECSC; nil if nothing was saved
	Kitty []uint8
	// X, Y, Pending is where the cursor stood when the screen was left.
	X, Y    int
	Pending bool
}

// Saved is what DECSC saves.
type Saved struct {
	X, Y     int
	Pending  bool
	Pen      int // index into State.Styles
	Charsets Charsets
	Origin   bool
}

// Cursor is the cursor and the pen.
type Cursor struct {
	X, Y     int
	Pending  bool // the last column was written, the next character wraps
	Pen      int  // index into State.Styles
	Charsets Charsets
	Style    uint8 // DECSCUSR, 0..6
}

// Charsets are the designated sets (the final byte of their designation) and
// which of them is shifted in. Single is a pending single shift (2 or 3): nothing sets
// it, since SS2 and SS3 do nothing.
type Charsets struct {
	G      [4]uint8
	GL     uint8
	Single uint8
}

// Region is the scroll region, rows Top..Bottom inclusive.
type Region struct{ Top, Bottom int }

// Modes are the terminal's modes; the numbering of bits belongs to the terminal.
type Modes struct {
	Bits, SavedBits uint64
	ModifyOtherKeys uint8
}

// Names are the strings that a program set about itself.
type Names struct {
	Title, Icon, Cwd string
	Titles, Icons    []string // stacks of XTWINOPS 22 and 23, oldest first
}

// PaletteEntry is a colour set by OSC 4 (Index 0..255), 10, 11 or 12 (Index 256,
// 257, 258): RGB as 0xRRGGBB.
type PaletteEntry struct {
	Index int
	RGB   uint32
}

// TextState is what printing remembers between characters.
type TextState struct {
	Last  string // the cluster that REP repeats; empty if none
	Joins bool   // the next character may join the cluster left of the cursor
	Code  rune   // the last code point of that cluster
}

// Lexer is an unfinished sequence or character.
type Lexer struct {
	Phase   uint8
	Held    []byte // bytes of an unfinished UTF-8 sequence
	Prefix  uint8  // private marker of an unfinished CSI or DCS
	Inter   []byte // its intermediate bytes
	Params  []int32
	Colons  uint32 // bit i: Params[i] follows a colon
	Data    []byte // payload of an unfinished OSC or DCS
	Dropped bool   // its payload passed the limit
}
