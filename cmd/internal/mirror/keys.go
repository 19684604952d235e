package mirror

import (
	"bytes"
	"strconv"
)

// Keys finds the detach keys in what a person's terminal sends: Ctrl-\, then d. Ctrl-\
// twice is one Ctrl-\ for the program; with any other key behind it, both are the
// program's. The keys are known in their common form, and in those of the kitty
// keyboard protocol and of xterm's modifyOtherKeys; in a bracketed paste they are text.
type Keys struct {
	held  []byte // Ctrl-\ as it came, while the next key is awaited
	paste bool
}

// The codes of the keys.
const (
	backslash = '\\'
	letterD   = 'd'
)

// Feed returns what of p is for the program, and whether the person wants to detach.
// out is valid until p changes, and until the next call.
func (k *Keys) Feed(p []byte) (out []byte, detach bool) {
	for len(p) > 0 {
		key := nextKey(p)
		raw := p[:key.size]
		p = p[key.size:]
		switch {
		case key.paste != 0:
			k.paste = key.paste == pasteBegin
		case k.paste:
		case k.held == nil && key.prefix():
			if !key.release {
				k.held = bytes.Clone(raw)
			}
			continue
		case k.held != nil && key.release:
			continue // of Ctrl-\ itself
		case k.held != nil && key.code == letterD && !key.ctrl:
			return out, true
		case k.held != nil && key.prefix():
			k.held = nil
		}
		if k.held != nil {
			out = append(out, k.held...)
			k.held = nil
		}
		out = append(out, raw...)
	}
	return out, false
}

// key is what the next bytes of input are.
type key struct {
	size    int  // bytes
	code    int  // of the character, 0 if it does not matter
	ctrl    bool // with Ctrl and no other modifier
	release bool
	paste   int
}

const (
	pasteBegin = 200
	pasteEnd   = 201
)

func (k key) prefix() bool { return k.code == backslash && k.ctrl }

// nextKey reads the key that p begins with, as far as Keys cares.
func nextKey(p []byte) key {
	switch {
	case p[0] == 0x1C:
		return key{size: 1, code: backslash, ctrl: true}
	case p[0] != 0x1B || len(p) < 3 || p[1] != '[':
		return key{size: 1, code: int(p[0])}
	}
	n := 2
	for n < len(p) && (p[n] >= '0' && p[n] <= '9' || p[n] == ';' || p[n] == ':') {
		n++
	}
	if n == len(p) || p[n] != 'u' && p[n] != '~' {
		return key{size: 2} // no key that matters: its rest is read as text
	}
	k := key{size: n + 1}
	fields := bytes.Split(p[2:n], []byte{';'})
	number := func(field, sub, absent int) int {
		if field >= len(fields) {
			return absent
		}
		parts := bytes.Split(fields[field], []byte{':'})
		if sub >= len(parts) || len(parts[sub]) == 0 {
			return absent
		}
		v, err := strconv.Atoi(string(parts[sub]))
		if err != nil {
			return absent
		}
		return v
	}
	const ctrl, locks = 4, 64 | 128
	modifiers := 0
	switch first := number(0, 0, 0); {
	case p[n] == 'u': // CSI code:... ; modifiers:event u
		k.code, modifiers = first, number(1, 0, 1)-1
		k.release = number(1, 1, 1) == 3
	case first == 27: // CSI 27 ; modifiers ; code ~
		k.code, modifiers = number(2, 0, 0), number(1, 0, 1)-1
	case first == pasteBegin, first == pasteEnd:
		k.paste = first
	}
	k.ctrl = modifiers&^locks == ctrl
	if !k.ctrl && modifiers&^locks != 0 {
		k.code = 0
	}
	return k
}
