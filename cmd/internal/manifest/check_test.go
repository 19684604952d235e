package manifest

import (
	"encoding/json"
	"strings"
	"testing"
)

var probe = Verb{Name: "probe", Params: []Param{
	{Name: "s", Type: String, Required: true},
	{Name: "n", Type: Integer, Min: at(1), Max: at(10), Default: 3},
	{Name: "b", Type: Boolean},
	{Name: "a", Type: Array, Elem: String},
	{Name: "o", Type: Object, Elem: String},
	{Name: "d", Type: Bytes},
	{Name: "c", Type: String, Choices: []string{"x", "y"}},
	{Name: "ls", Type: String, MaxBytes: 4},
	{Name: "la", Type: Array, Elem: String, MaxBytes: 4},
	{Name: "lo", Type: Object, Elem: String, MaxBytes: 4},
}}

func TestCheck(t *testing.T) {
	for _, c := range []struct{ params, reason, param string }{
		{`{"s":"x"}`, "", ""},
		{`{"s":"x","n":1,"b":true,"a":["1"],"o":{"k":"v"},"d":"aGk=","c":"y"}`, "", ""},
		{`{}`, "missing", "s"},
		{`{"z":1}`, "unknown", "z"},
		{`{"s":1}`, "type", "s"},
		{`{"s":null}`, "type", "s"},
		{`{"s":"x","n":"1"}`, "type", "n"},
		{`{"s":"x","n":1.5}`, "type", "n"},
		{`{"s":"x","n":1e1}`, "type", "n"},
		{`{"s":"x","n":null}`, "type", "n"},
		{`{"s":"x","n":true}`, "type", "n"},
		{`{"s":"x","n":0}`, "range", "n"},
		{`{"s":"x","n":11}`, "range", "n"},
		{`{"s":"x","n":-1}`, "range", "n"},
		{`{"s":"x","n":99999999999999999999999999}`, "range", "n"},
		{`{"s":"x","b":1}`, "type", "b"},
		{`{"s":"x","a":"[]"}`, "type", "a"},
		{`{"s":"x","a":[1]}`, "type", "a"},
		{`{"s":"x","o":[]}`, "type", "o"},
		{`{"s":"x","o":{"k":1}}`, "type", "o"},
		{`{"s":"x","d":"%"}`, "type", "d"},
		{`{"s":"x","d":[104,105]}`, "type", "d"},
		{`{"s":"x","a":["x",null]}`, "type", "a"},
		{`{"s":"x","o":{"k":null}}`, "type", "o"},
		{`{"s":"x","n":-0}`, "range", "n"},
		{`{"s":"x","c":"z"}`, "choice", "c"},
		{`{"s":"x","ls":"\u00e9\u00e9"}`, "", ""},
		{`{"s":"x","ls":"\u00e9\u00e9x"}`, "range", "ls"},
		{`{"s":"x","la":["a","b"]}`, "", ""},
		{`{"s":"x","la":["a","bc"]}`, "range", "la"},
		{`{"s":"x","la":["","","",""]}`, "", ""},
		{`{"s":"x","la":["","","","",""]}`, "range", "la"},
		{`{"s":"x","lo":{"a":"b"}}`, "", ""},
		{`{"s":"x","lo":{"a":"bc"}}`, "range", "lo"},
		{`{"s":"x","lo":{"ab":"c"}}`, "range", "lo"},
	} {
		var params map[string]json.RawMessage
		if err := json.Unmarshal([]byte(c.params), &params); err != nil {
			t.Fatal(err)
		}
		p := probe.Check(params)
		switch {
		case c.reason == "" && p != nil:
			t.Errorf("%s: %+v", c.params, p)
		case c.reason != "" && (p == nil || p.Reason != c.reason || p.Param != c.param || p.Message == ""):
			t.Errorf("%s: %+v", c.params, p)
		case c.reason == "" && string(params["n"]) == "":
			t.Errorf("%s: the default is missing", c.params)
		}
	}
}

// TestDigits: an integer of many digits is refused, however many, without the hours that
// it would take to read it.
func TestDigits(t *testing.T) {
	for _, c := range []struct {
		raw    string
		reason string
	}{
		{strings.Repeat("7", 4096), "range"},
		{strings.Repeat("7", 4097), "type"},
		{strings.Repeat("7", 32<<20), "type"},
		{"-" + strings.Repeat("7", 32<<20), "type"},
	} {
		for _, v := range []*Verb{&probe, Find("events"), Find("pane.capture_rows")} {
			for i := range v.Params {
				p := &v.Params[i]
				if p.Type != Integer {
					continue
				}
				if problem := p.check(json.RawMessage(c.raw)); problem == nil || problem.Reason != c.reason || len(problem.Message) > 200 {
					t.Errorf("%s of %s, %d digits: %+v", p.Name, v.Name, len(c.raw), problem)
				}
			}
		}
	}
}

// FuzzCheck: whatever the parameters of whatever verb, the check ends in a
// clear outcome.
func FuzzCheck(f *testing.F) {
	f.Add(uint8(0), `{"pane":"p0","tail":1}`)
	f.Add(uint8(12), `{"pane":[],"max_rows":-0}`)
	f.Fuzz(func(t *testing.T, verb uint8, text string) {
		var params map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &params) != nil || params == nil {
			return
		}
		v := &Verbs[int(verb)%len(Verbs)]
		if p := v.Check(params); p != nil {
			if p.Message == "" || p.Reason == "" || v.Param(p.Param) == nil && p.Reason != "unknown" {
				t.Fatalf("%s %s: %+v", v.Name, text, p)
			}
		}
	})
}

func TestNames(t *testing.T) {
	v := Find("pane.capture_rows")
	if got := strings.Join(v.Command(), " "); got != "pane capture-rows" {
		t.Errorf("command %q", got)
	}
	if got := v.Tool(); got != "pane_dcapture__rows" { // seed 000, section 2
		t.Errorf("tool %q", got)
	}
}

// TestNeeds: one value of one parameter changes the right, nothing else does.
func TestNeeds(t *testing.T) {
	v := &Verb{Right: Read, RightIf: &RightIf{Param: "mode", Value: "write", Right: Write}}
	for raw, want := range map[string]Right{
		`{}`: Read, `{"mode":"read"}`: Read, `{"mode":"write"}`: Write, `{"mode":"wr\u0069te"}`: Write,
		`{"mode":["write"]}`: Read, `{"mode":null}`: Read, `{"other":"write"}`: Read,
	} {
		var params map[string]json.RawMessage
		if err := json.Unmarshal([]byte(raw), &params); err != nil {
			t.Fatal(err)
		}
		if got := v.Needs(params); got != want {
			t.Errorf("%s needs %q, not %q", raw, got, want)
		}
	}
}
