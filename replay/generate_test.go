package replay_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// A stream is generated terminal input: operations drawn at random, by a seed,
// from named groups of functions. The operations are kept apart, so that a
// stream that fails can be made smaller by leaving some out.
//
// Every other stream keeps to what xterm.js and tmux both have, so that one
// known difference between them does not hide what follows it: no HPR, VPR,
// CHT, SU and SD of nothing; IL and DL with the CR that tmux leaves out; REP
// right behind its character.
type stream struct {
	r          *rand.Rand
	common     bool
	cols, rows int
	ops        []caseStep
}

// A group draws one operation of its kind.
type group struct {
	name string
	draw func(s *stream) string
}

// groups are the function groups of the generator, in the order of reports.
// Every group but "text" is mixed with text and plain motion, so that an
// operation has something to work on.
var groups = []group{
	{"text", (*stream).text},
	{"motion", (*stream).motion},
	{"erase", (*stream).erase},
	{"insdel", (*stream).insdel},
	{"margins", (*stream).margins},
	{"scroll", (*stream).scroll},
	{"wrap", (*stream).wrap},
	{"wide", (*stream).wide},
	{"combining", (*stream).combining},
	{"charset", (*stream).charset},
	{"tabs", (*stream).tabs},
	{"alt", (*stream).alt},
	{"save", (*stream).save},
	{"sgr", (*stream).sgr},
	{"rep", (*stream).rep},
	{"reset", (*stream).reset},
	{"strings", (*stream).strings},
	{"lexer", (*stream).lexer},
}

// mixedGroup draws from all groups.
const mixedGroup = "mixed"

// resizeGroup is text and motion with changes of size in between.
const resizeGroup = "resize"

// sizes are the sizes that generated streams run at. xterm.js has no screens
// of one column.
var sizes = [][2]int{{10, 4}, {20, 5}, {80, 24}, {7, 3}, {2, 2}, {5, 1}, {3, 8}, {40, 10}}

// groupNames lists the groups, the two made of others last.
func groupNames() []string {
	var names []string
	for _, g := range groups {
		names = append(names, g.name)
	}
	return append(names, mixedGroup, resizeGroup)
}

// generate returns the stream that seed names in a group, of up to n operations.
func generate(name string, seed uint64, n int) *stream {
	s := &stream{r: rand.New(rand.NewPCG(seed, seedOf(name)))}
	s.common = seed%2 == 0
	size := sizes[s.r.IntN(len(sizes))]
	s.cols, s.rows = size[0], size[1]
	only := slices.IndexFunc(groups, func(g group) bool { return g.name == name })
	for range 1 + s.r.IntN(n) {
		op := ""
		switch k := s.r.IntN(10); {
		case k < 6:
			i := only
			if name == mixedGroup {
				i = s.r.IntN(len(groups))
			}
			if name == resizeGroup {
				i = s.r.IntN(3) // text, motion, erase
			}
			op = groups[i].draw(s)
		case k < 9:
			op = s.text()
		default:
			op = s.motion()
		}
		s.ops = append(s.ops, caseStep{In: []byte(op)})
		if name == resizeGroup && s.r.IntN(6) == 0 {
			s.ops = append(s.ops, caseStep{Resize: &[2]int{2 + s.r.IntN(s.cols*2), 1 + s.r.IntN(s.rows*2)}})
		}
	}
	return s
}

// asCase returns the stream as a case without expectations.
func (s *stream) asCase(name, group string) termCase {
	return termCase{Name: name, Group: group, Cols: s.cols, Rows: s.rows, Steps: joinSteps(s.ops)}
}

// joinSteps puts inputs that follow each other into one step.
func joinSteps(ops []caseStep) []caseStep {
	var steps []caseStep
	for _, op := range ops {
		if n := len(steps); n > 0 && op.Resize == nil && steps[n-1].Resize == nil {
			steps[n-1].In = slices.Concat(steps[n-1].In, op.In)
		} else {
			steps = append(steps, op)
		}
	}
	return steps
}

// one returns one of the alternatives.
func (s *stream) one(alternatives ...string) string {
	return alternatives[s.r.IntN(len(alternatives))]
}

// param returns a parameter: absent, 0, small, near the size, or beyond it.
func (s *stream) param(size int) string {
	switch s.r.IntN(8) {
	case 0:
		return ""
	case 1:
		return "0"
	case 2, 3, 4:
		return fmt.Sprint(1 + s.r.IntN(3))
	case 5:
		return fmt.Sprint(1 + s.r.IntN(size))
	case 6:
		return fmt.Sprint(size)
	}
	return fmt.Sprint(size + s.r.IntN(1000))
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// word returns n printable ASCII characters, a blank among them now and then.
func (s *stream) word(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[s.r.IntN(len(letters))]
		if s.r.IntN(12) == 0 {
			b[i] = ' '
		}
	}
	return string(b)
}

func (s *stream) text() string {
	switch s.r.IntN(6) {
	case 0:
		return "\r\n" + s.word(1+s.r.IntN(s.cols))
	case 1:
		return s.word(1 + s.r.IntN(s.cols+2))
	case 2:
		return s.one("\n", "\r", "\b", "\r\n", "\r\n\r\n", "\x07")
	}
	return s.word(1 + s.r.IntN(5))
}

func (s *stream) motion() string {
	switch s.r.IntN(8) {
	case 0:
		return "\x1b[" + s.param(s.rows) + ";" + s.param(s.cols) + s.one("H", "f")
	case 1, 2:
		if s.common {
			return "\x1b[" + s.param(s.rows) + s.one("A", "B", "E", "F", "d")
		}
		return "\x1b[" + s.param(s.rows) + s.one("A", "B", "E", "F", "d", "e")
	case 3, 4:
		if s.common {
			return "\x1b[" + s.param(s.cols) + s.one("C", "D", "G", "`")
		}
		return "\x1b[" + s.param(s.cols) + s.one("C", "D", "G", "`", "a")
	case 5:
		return s.one("\x1b[H", "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D")
	case 6:
		return s.one("\x1bD", "\x1bM", "\x1bE", "\v", "\f")
	}
	return s.one("\b", "\r", "\n", "\b\b\b")
}

func (s *stream) erase() string {
	switch s.r.IntN(4) {
	case 0:
		return "\x1b[" + s.one("", "0", "1", "2", "3") + "J"
	case 1:
		return "\x1b[" + s.param(s.cols) + "X"
	}
	return "\x1b[" + s.one("", "0", "1", "2") + "K"
}

func (s *stream) insdel() string {
	switch s.r.IntN(5) {
	case 0:
		return "\x1b[4h" + s.word(1+s.r.IntN(4)) + "\x1b[4l"
	case 1, 2:
		return "\x1b[" + s.param(s.cols) + s.one("@", "P")
	}
	if s.common {
		return "\x1b[" + s.param(s.rows) + s.one("L\r", "M\r")
	}
	return "\x1b[" + s.param(s.rows) + s.one("L", "M")
}

func (s *stream) margins() string {
	switch s.r.IntN(6) {
	case 0:
		return "\x1b[" + s.param(s.rows) + ";" + s.param(s.rows) + "r"
	case 1:
		top := 1 + s.r.IntN(s.rows)
		return fmt.Sprintf("\x1b[%d;%dr", top, top+s.r.IntN(s.rows))
	case 2:
		return s.one("\x1b[r", "\x1b[?6h", "\x1b[?6l")
	case 3:
		return s.insdel()
	case 4:
		return s.scroll()
	}
	return s.motion()
}

func (s *stream) scroll() string {
	switch s.r.IntN(4) {
	case 0, 1:
		if s.common {
			return fmt.Sprintf("\x1b[%d%s", 1+s.r.IntN(s.rows), s.one("S", "T"))
		}
		return "\x1b[" + s.param(s.rows) + s.one("S", "T")
	case 2:
		return s.one("\x1bD", "\x1bM", "\x1bE", "\n", "\r\n")
	}
	return s.one("\x1b[H\x1bM", "\x1b[999;1H\n", "\x1b[999H\x1bD"+s.word(2))
}

func (s *stream) wrap() string {
	switch s.r.IntN(5) {
	case 0:
		return s.one("\x1b[?7l", "\x1b[?7h", "\x1b[?7h")
	case 1:
		return s.word(s.cols) + s.one("\r", "\b", "\x1b[K", "\x1b[J", "\t", "\x1b[C", "\x1b[D", "\x1b[A", "\x1b[m", "\x1b7", "\n", "\x1b[X", "\x1b[P", "\x1b[@", "\x1b[1K")
	case 2:
		return s.word(s.cols*(1+s.r.IntN(3)) + s.r.IntN(3))
	}
	return s.word(s.cols - 1 + s.r.IntN(3))
}

// wides are characters of width 2 in every table.
var wides = []string{"漢", "字", "한", "あ", "カ", "，", "𠀀"}

func (s *stream) wide() string {
	switch s.r.IntN(6) {
	case 0:
		return "\x1b[" + s.param(s.cols) + s.one("@", "P", "X", "G", "D")
	case 1:
		return s.one("\b", "\b\b", "\x1b[K", "\x1b[1K", "\x1b[4h", "\x1b[4l", "\x1b[?7l", "\x1b[?7h")
	case 2:
		b := ""
		for range 1 + s.r.IntN(s.cols+1) {
			b += s.one(wides...)
		}
		return b
	case 3:
		return s.word(1+s.r.IntN(2)) + s.one(wides...)
	}
	return s.one(wides...)
}

func (s *stream) combining() string {
	switch s.r.IntN(4) {
	case 0:
		return s.word(1) + s.one("\u0301", "\u0308", "\u0323")
	case 1:
		return s.one(wides...) + "\u0301"
	case 2:
		return s.word(max(1, s.cols-1)) + s.one("e\u0301", "\u0301")
	}
	// A mark with nothing to join is left out: xterm.js gives it a cell, tmux
	// drops it, looptape gives it a blank to sit on.
	return s.one("é", "e\u0301\u0323", "o\x1b[m\u0301x", "o\x1b[31m\u0323")
}

func (s *stream) charset() string {
	switch s.r.IntN(4) {
	case 0:
		return s.one("\x0e", "\x0f")
	case 1:
		return s.one("\x1b(0", "\x1b)0", "\x1b(B", "\x1b)B")
	case 2:
		return s.one("\x1b7", "\x1b8")
	}
	return s.one("lqqk", "x  x", "mqqj", "`afgy", "_abc", "tnu", "wv")
}

func (s *stream) tabs() string {
	switch s.r.IntN(6) {
	case 0:
		return "\x1bH"
	case 1:
		return "\x1b[" + s.one("", "0", "3") + "g"
	case 2:
		if s.common {
			return "\x1b[" + s.param(4) + "Z"
		}
		return "\x1b[" + s.param(4) + s.one("Z", "I")
	}
	return s.one("\t", "\t\t", "\t"+s.word(1))
}

func (s *stream) alt() string {
	switch s.r.IntN(4) {
	case 0:
		return "\x1b[?" + s.one("47", "1047", "1049", "1049") + s.one("h", "l")
	case 1:
		return s.one("\x1b[?1049h", "\x1b[?1049l", "\x1b[?1049h\x1b[H", "\x1b[2J")
	}
	return s.text()
}

func (s *stream) save() string {
	switch s.r.IntN(4) {
	case 0:
		return s.one("\x1b7", "\x1b8")
	case 1:
		return s.one("\x1b[s", "\x1b[u", "\x1b[?1048h", "\x1b[?1048l")
	case 2:
		return s.one("\x1b[?6h", "\x1b[?6l", "\x1b[2;3r", "\x1b[r", "\x1b[31m", "\x1b(0", "\x1b(B")
	}
	return s.text()
}

func (s *stream) sgr() string {
	return s.one("\x1b[m", "\x1b[1;31m", "\x1b[38;5;208m", "\x1b[48;2;1;2;3m", "\x1b[38:2::9:8:7m",
		"\x1b[4:3m", "\x1b[58:5:9m", "\x1b[7m", "\x1b[27;22m", "\x1b[;m", "\x1b[0;;0m", "\x1b[44m\x1b[K",
		"\x1b[38;5m", "\x1b[38;2;1m", "\x1b[99999m", "\x1b]8;;http://x.example\x07", "\x1b]8;;\x07") + s.word(s.r.IntN(3))
}

func (s *stream) rep() string {
	switch s.r.IntN(4) {
	case 0:
		return s.word(1) + "\x1b[" + s.param(s.cols) + "b"
	case 1:
		return s.one(wides...) + "\x1b[" + s.param(4) + "b"
	case 2:
		if s.common {
			return s.word(1) + "\x1b[b"
		}
		return "\x1b[" + s.param(4) + "b"
	}
	if s.common {
		return s.word(1) + "\x1b[2b"
	}
	return s.word(1) + s.one("\x1b[2b", "\x1b[C\x1b[2b", "\r\x1b[2b", "\x1b[m\x1b[2b")
}

func (s *stream) reset() string {
	switch s.r.IntN(4) {
	case 0:
		return s.one("\x1bc", "\x1b[!p", "\x1b#8")
	case 1:
		return s.margins()
	case 2:
		return s.one("\x1b[?7l", "\x1b[4h", "\x1b[?6h", "\x1b(0", "\x1b7", "\x1b8", "\x1b[?25l")
	}
	return s.text()
}

func (s *stream) strings() string {
	body := s.one("", "0;title", "2;t", "8;;u", "52;c;eA==", "133;A", "q", "漢\u0301", "a\tb\nc", s.word(30))
	open := s.one("\x1b]", "\x1b]", "\x1bP", "\x1b_", "\x1b^", "\x1bX")
	end := s.one("\x07\x1b\\", "\x1b\\", "\x1b\\", "\x18", "\x1a", "\x1b[C", "\x1bM")
	return open + body + end
}

func (s *stream) lexer() string {
	switch s.r.IntN(6) {
	case 0:
		return "\x1b[" + s.param(s.cols) + s.one("\b", "\r", "\n", "\t", "\v") + s.one("C", "D", "A", ";2H")
	case 1:
		return "\x1b" + s.one("\r", "\n", "\b") + s.one("M", "D", "7", "[2C")
	case 2:
		return "\x1b[" + s.one("?", ">", "=", "<") + s.param(9) + s.one("A", "J", "K", "m", "u", "c", "x")
	case 3:
		return "\x1b[" + s.param(9) + s.one(" ", "!", "\"", "$", "'", "*") + s.one("q", "z", "w", "x", "@")
	case 4:
		return s.one("\x1b[2\x18", "\x1b[\x1a", "\x1b\x1b", "\x1b[1\x1b[2C", "\x1b[;;;H", "\x1b[1;2;3;4;5H", "\x1b[1:2H", "\x1b[1?2C", "\x1b[3\x7fC")
	}
	return s.one("\x00", "\x7f", "\x05", "\x01", "\x1b(B", "\x1b%G", "\x1b=", "\x1b>", "\x1b F")
}
