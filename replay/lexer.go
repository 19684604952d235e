package replay

// Limits of the lexer. What is beyond them is consumed and dropped.
const (
	MaxParams = 32    // parameters of a control sequence; further ones are ignored
	maxParam  = 65535 // larger parameters are clamped to it
	MaxOSC    = 8192  // bytes of an OSC payload; a longer one is ignored as a whole
	MaxDCS    = 1024  // bytes of a DCS payload; likewise
)

// Kind says what a Token is.
type Kind uint8

// Kinds of Token.
const (
	None    Kind = iota // everything was consumed and nothing is complete yet
	Text                // printable characters in Token.Text
	Control             // one C0 control, DEL or C1 code point in Token.Code
	Escape              // ESC, Lexer.Inter, Token.Code
	CSI                 // control sequence: Prefix, parameters, Inter, Token.Code
	OSC                 // operating system command, payload in Token.Text
	DCS                 // device control string: as CSI, payload in Token.Text
	String              // something without a meaning has ended: APC, PM, SOS, malformed or beyond a limit
)

// Token is one unit of the stream. Text is valid until the next call of Next.
type Token struct {
	Kind  Kind
	ASCII bool // Text is ASCII only
	Code  rune // final byte, or the control; BEL or ESC for what ends an OSC
	Text  []byte
}

type phase uint8

const (
	ground phase = iota
	escape
	escapeInter
	csiEntry
	csiParam
	csiInter
	csiIgnore
	oscString
	dcsEntry
	dcsParam
	dcsInter
	dcsPass
	dcsIgnore
	plainString
	oscEnd // behind an ESC that ends it: a backslash completes ST
	dcsEnd
	phases
)

// Lexer cuts a terminal's byte stream into tokens after Paul Williams' state
// diagram for ANSI parsers, with UTF-8 instead of 8-bit controls: a raw byte
// 0x80..0x9F is never a control. The zero Lexer is in the ground state. It is the
// only lexer of the product.
type Lexer struct {
	phase   phase
	prefix  byte // private marker, one of < = > ? or 0
	ninter  uint8
	nheld   uint8
	dropped bool // the payload is beyond its limit
	inter   [2]byte
	held    [4]byte
	char    [4]byte // backing of a Text token that was resolved from held
	colons  uint32  // bit i: params[i] follows a colon
	nparams int
	params  [MaxParams]int32 // -1 is an absent parameter
	data    []byte
}

// Next reads one token from p and returns how many bytes it took. The count is 0
// if p is empty, or if p's first byte only decides about what came before: that
// held bytes are U+FFFD, or that an ESC has ended a string. Any cut of a stream gives the same tokens, except that a run of
// text may come in several.
func (l *Lexer) Next(p []byte) (Token, int) {
	if len(p) == 0 {
		return Token{}, 0
	}
	if l.phase != ground {
		return l.sequence(p, 0)
	}
	if l.nheld > 0 {
		return l.resume(p)
	}
	switch b := p[0]; {
	case b >= 0x20 && b != 0x7F:
		return l.text(p)
	case b == 0x1B:
		if tok, n := l.wholeCSI(p); n > 0 {
			return tok, n
		}
		l.phase = escape
		return l.sequence(p, 1)
	default:
		return Token{Kind: Control, Code: rune(b)}, 1
	}
}

func (l *Lexer) clear() {
	l.prefix, l.ninter, l.nparams, l.colons, l.dropped = 0, 0, 0, 0, false
	l.data = l.data[:0]
}

// sequence goes on inside an escape or control sequence or a string, from p[i].
func (l *Lexer) sequence(p []byte, i int) (Token, int) {
	for i < len(p) {
		if l.phase == oscEnd || l.phase == dcsEnd {
			return l.endString(p, i)
		}
		if l.phase >= oscString && l.phase != dcsEntry && l.phase != dcsParam && l.phase != dcsInter {
			n, tok := l.payload(p[i:])
			i += n
			if tok.Kind != None {
				return tok, i
			}
			continue
		}
		b := p[i]
		switch {
		case b >= 0x80 && l.phase >= dcsEntry:
			l.phase = dcsIgnore // still a string
			continue
		case b >= 0x80: // no sequence goes on with it: it is text
			l.phase = ground
			tok, n := l.Next(p[i:])
			return tok, i + n
		case b == 0x1B:
			l.phase = escape
			i++
			continue
		case b == 0x18 || b == 0x1A:
			l.phase = ground
			return Token{Kind: Control, Code: rune(b)}, i + 1
		case b < 0x20:
			i++
			if l.phase >= dcsEntry {
				continue
			}
			return Token{Kind: Control, Code: rune(b)}, i
		case b == 0x7F:
			i++
			continue
		}
		i++
		var tok Token
		switch l.phase {
		case escape, escapeInter:
			tok = l.escapeByte(b)
		case csiEntry, csiParam, csiInter, csiIgnore:
			tok = l.csiByte(b)
		default:
			l.dcsByte(b)
		}
		if tok.Kind != None {
			return tok, i
		}
	}
	return Token{}, i
}

// wholeCSI reads a control sequence that lies in p as a whole and is of the common
// form: a private marker or none, digits, semicolons and colons, the final byte. It
// returns 0 for anything else, which sequence then takes byte by byte.
func (l *Lexer) wholeCSI(p []byte) (Token, int) {
	if len(p) < 3 || p[1] != '[' {
		return Token{}, 0
	}
	i, prefix := 2, byte(0)
	if b := p[2]; b >= 0x3C && b <= 0x3F {
		i, prefix = 3, b
	}
	n, v, colons := 0, int32(-1), uint32(0)
	for start := i; i < len(p); i++ {
		b := p[i]
		switch {
		case b >= '0' && b <= '9':
			v = min(max(v, 0)*10+int32(b-'0'), maxParam)
		case b == ';' || b == ':':
			if n == MaxParams-1 {
				return Token{}, 0
			}
			l.params[n] = v
			n++
			v = -1
			if b == ':' {
				colons |= 1 << n
			}
		case b >= 0x40 && b < 0x7F:
			if i > start {
				l.params[n] = v
				n++
			}
			l.prefix, l.ninter, l.nparams, l.colons = prefix, 0, n, colons
			l.dropped, l.data = false, l.data[:0]
			return Token{Kind: CSI, Code: rune(b)}, i + 1
		default:
			return Token{}, 0
		}
	}
	return Token{}, 0
}

func (l *Lexer) collect(b byte) bool {
	if int(l.ninter) == len(l.inter) {
		return false
	}
	l.inter[l.ninter] = b
	l.ninter++
	return true
}

func (l *Lexer) escapeByte(b byte) Token {
	if l.phase == escape {
		l.clear()
	}
	if b < 0x30 {
		l.dropped = !l.collect(b) || l.dropped
		l.phase = escapeInter
		return Token{}
	}
	if l.phase == escape {
		switch b {
		case '[':
			l.phase = csiEntry
			return Token{}
		case ']':
			l.phase = oscString
			return Token{}
		case 'P':
			l.phase = dcsEntry
			return Token{}
		case 'X', '^', '_':
			l.phase = plainString
			return Token{}
		}
	}
	l.phase = ground
	if l.dropped {
		return Token{Kind: String}
	}
	return Token{Kind: Escape, Code: rune(b)}
}

func (l *Lexer) csiByte(b byte) Token {
	switch {
	case b >= 0x40:
		tok := Token{Kind: CSI, Code: rune(b)}
		if l.phase == csiIgnore {
			tok = Token{Kind: String}
		}
		l.phase = ground
		return tok
	case l.phase == csiIgnore:
	case b < 0x30:
		l.phase = csiInter
		if !l.collect(b) {
			l.phase = csiIgnore
		}
	case l.phase == csiInter:
		l.phase = csiIgnore
	case b >= 0x3C:
		if l.phase != csiEntry {
			l.phase = csiIgnore
			return Token{}
		}
		l.prefix = b
		l.phase = csiParam
	default:
		l.param(b)
		l.phase = csiParam
	}
	return Token{}
}

// param takes a digit, semicolon or colon. Parameters beyond MaxParams are
// counted into none.
func (l *Lexer) param(b byte) {
	if l.nparams == 0 {
		l.nparams = 1
		l.params[0] = -1
	}
	if b >= ':' {
		if l.nparams > MaxParams {
			return
		}
		if l.nparams < MaxParams {
			l.params[l.nparams] = -1
			if b == ':' {
				l.colons |= 1 << l.nparams
			}
		}
		l.nparams++
		return
	}
	if l.nparams > MaxParams {
		return
	}
	v := &l.params[l.nparams-1]
	if *v < 0 {
		*v = 0
	}
	*v = min(*v*10+int32(b-'0'), maxParam)
}

func (l *Lexer) dcsByte(b byte) {
	switch {
	case b >= 0x40:
		l.data = append(l.data, b) // the final byte leads the payload
		l.phase = dcsPass
	case b < 0x30:
		l.phase = dcsInter
		if !l.collect(b) {
			l.phase = dcsIgnore
		}
	case l.phase == dcsInter:
		l.phase = dcsIgnore
	case b >= 0x3C:
		if l.phase != dcsEntry {
			l.phase = dcsIgnore
			return
		}
		l.prefix = b
		l.phase = dcsParam
	default:
		l.param(b)
		l.phase = dcsParam
	}
}

// payload takes bytes of a string up to its end. BEL ends an OSC only; ESC ends
// any string and begins a sequence; CAN and SUB abort.
func (l *Lexer) payload(p []byte) (int, Token) {
	i := 0
	for i < len(p) && p[i] != 0x1B && p[i] != 0x18 && p[i] != 0x1A && (p[i] != 0x07 || l.phase != oscString) {
		i++
	}
	l.keep(p[:i])
	if i == len(p) {
		return i, Token{}
	}
	was := l.phase
	l.phase = ground
	switch b := p[i]; {
	case b != 0x1B && b != 0x07:
		return i + 1, Token{Kind: Control, Code: rune(b)}
	case b == 0x07 && !l.dropped:
		return i + 1, Token{Kind: OSC, Code: 0x07, Text: l.data}
	case b == 0x07:
	case was == oscString && !l.dropped:
		l.phase = oscEnd
		return i + 1, Token{}
	case was == dcsPass && !l.dropped:
		l.phase = dcsEnd
		return i + 1, Token{}
	default:
		l.phase = escape
	}
	return i + 1, Token{Kind: String}
}

// endString gives out a string that an ESC has ended, with the rest of ST if that
// is what p[i] is. If not, p[i] goes on behind the ESC.
func (l *Lexer) endString(p []byte, i int) (Token, int) {
	tok := Token{Kind: OSC, Code: 0x1B, Text: l.data}
	if l.phase == dcsEnd {
		tok = Token{Kind: DCS, Code: rune(l.data[0]), Text: l.data[1:]}
	}
	if p[i] == '\\' {
		l.phase = ground
		return tok, i + 1
	}
	l.phase = escape // what the token refers to is cleared by the next byte
	return tok, i
}

// keep appends to the payload, without C0 controls and DEL in an OSC.
func (l *Lexer) keep(p []byte) {
	limit := MaxOSC
	switch l.phase {
	case oscString:
	case dcsPass:
		limit = MaxDCS + 1
	default:
		return
	}
	if l.dropped {
		return
	}
	for _, b := range p {
		if b < 0x20 && l.phase == oscString {
			continue
		}
		if len(l.data) == limit {
			l.dropped = true
			l.data = l.data[:0]
			return
		}
		l.data = append(l.data, b)
	}
}

// Prefix returns the private marker of the last CSI or DCS token, or 0.
func (l *Lexer) Prefix() byte { return l.prefix }

// Inter returns the intermediate bytes of the last Escape, CSI or DCS token.
func (l *Lexer) Inter() []byte { return l.inter[:l.ninter] }

// Params returns the number of parameters of the last CSI or DCS token.
func (l *Lexer) Params() int { return min(l.nparams, MaxParams) }

// Param returns parameter i, or def if it is absent.
func (l *Lexer) Param(i, def int) int {
	if i >= l.Params() || l.params[i] < 0 {
		return def
	}
	return int(l.params[i])
}

// dropSubparameters forgets the parameters that follow a colon: only SGR has any.
func (l *Lexer) dropSubparameters() {
	n := 0
	for i := range l.Params() {
		if !l.Colon(i) {
			l.params[n] = l.params[i]
			n++
		}
	}
	l.nparams, l.colons = n, 0
}

// Colon says whether parameter i follows a colon (ITU T.416 sub-parameter).
func (l *Lexer) Colon(i int) bool { return l.colons>>i&1 != 0 }

// Held returns the bytes of an unfinished character.
func (l *Lexer) Held() []byte { return l.held[:l.nheld] }

// Reset puts the lexer into the ground state and forgets what is unfinished.
func (l *Lexer) Reset() {
	l.phase, l.nheld = ground, 0
	l.clear()
}
