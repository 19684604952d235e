package mirror

import "testing"

// TestKeys: which keys detach, and what of the others arrives.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		name, in, out string
		detach        bool
	}{
		{"text", "ls -l\r", "ls -l\r", false},
		{"detach", "ab\x1cdcd", "ab", true},
		{"a d alone", "d", "d", false},
		{"the prefix twice", "a\x1c\x1cb", "a\x1cb", false},
		{"the prefix twice, then d", "\x1c\x1cd", "\x1cd", false},
		{"three times, then d", "\x1c\x1c\x1cd", "\x1c", true},
		{"another key behind it", "\x1cx", "\x1cx", false},
		{"an arrow behind it", "\x1c\x1b[A", "\x1c\x1b[A", false},
		{"kitty", "\x1b[92;5ud", "", true},
		{"kitty, all keys reported", "\x1b[92;5u\x1b[92;5:3u\x1b[100u", "", true},
		{"kitty, with alternates and num lock", "\x1b[92:124;133:1u\x1b[100;129:1u", "", true},
		{"kitty, the prefix twice", "\x1b[92;5u\x1b[92;5u", "\x1b[92;5u", false},
		{"kitty, with shift as well", "\x1b[92;6ud", "\x1b[92;6ud", false},
		{"kitty, C-d", "\x1c\x1b[100;5u", "\x1c\x1b[100;5u", false},
		{"kitty, a release of something else", "\x1b[97;1:3u", "\x1b[97;1:3u", false},
		{"modifyOtherKeys", "\x1b[27;5;92~d", "", true},
		{"a function key", "\x1b[15~", "\x1b[15~", false},
		{"a paste", "\x1b[200~\x1cd\x1b[201~", "\x1b[200~\x1cd\x1b[201~", false},
		{"behind a paste", "\x1b[200~x\x1b[201~\x1cd", "\x1b[200~x\x1b[201~", true},
		{"a mouse event", "\x1b[<0;92;5M\x1b[M !!", "\x1b[<0;92;5M\x1b[M !!", false},
		{"sequences that are cut", "\x1b", "\x1b", false},
		{"cut later", "\x1b[92;5", "\x1b[92;5", false},
		{"too large", "\x1b[99999999999999999999;5u", "\x1b[99999999999999999999;5u", false},
		{"UTF-8", "\u6f22\u00fc", "\u6f22\u00fc", false},
	} {
		var k Keys
		out, detach := k.Feed([]byte(c.in))
		if string(out) != c.out || detach != c.detach {
			t.Errorf("%s: %q, %t", c.name, out, detach)
		}
	}
	var k Keys // one key at a time
	if out, detach := k.Feed([]byte("\x1c")); len(out) != 0 || detach {
		t.Errorf("%q, %t", out, detach)
	}
	if _, detach := k.Feed([]byte("d")); !detach {
		t.Error("in two pieces it does not detach")
	}
}

// FuzzKeys: nothing that is no detach key is lost.
func FuzzKeys(f *testing.F) {
	f.Add([]byte("a\x1c\x1cb\x1b[92;5u\x1b[200~x"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var k Keys
		var out []byte
		for i := range in { // the common form has no sequences to cut
			if in[i] == 0x1B {
				return
			}
			got, detach := k.Feed(in[i : i+1])
			if detach {
				return
			}
			out = append(out, got...)
		}
		held := len(k.held)
		var want []byte
		for i := 0; i < len(in)-held; i++ {
			if want = append(want, in[i]); in[i] == 0x1C && i+1 < len(in) && in[i+1] == 0x1C {
				i++
			}
		}
		if string(out) != string(want) {
			t.Errorf("of %q came %q", in, out)
		}
	})
}
