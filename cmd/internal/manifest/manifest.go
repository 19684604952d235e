package manifest

import (
	"encoding/json"
	"strings"
)

// Format is the version of the manifest's own shape.
const Format = 1

// Type is the type of a parameter or of a field of a result.
type Type string

// The types. A Time is a string in RFC 3339 with fractions of a second; Bytes
// is a string in base64 (RFC 4648, section 4). A Value is of any type.
const (
	String  Type = "string"
	Integer Type = "integer"
	Number  Type = "number"
	Boolean Type = "boolean"
	Time    Type = "time"
	Bytes   Type = "bytes"
	Array   Type = "array"
	Object  Type = "object"
	Value   Type = "value"
)

// Right is what a caller must hold to use a verb (contract.md section 4).
type Right string

// The rights. None admits everybody.
const (
	None   Right = ""
	Read   Right = "read"
	Write  Right = "write"
	Manage Right = "manage"
)

// Effect is what a call of a verb changes, for those who decide what an agent
// may call unasked.
type Effect string

// The effects. A verb that needs no more than Read has none written down: it
// Reads.
const (
	Reads Effect = "reads" // changes nothing
	Adds  Effect = "adds"  // makes something new, with each call once more
	Sets  Effect = "sets"  // brings something into a state: the same call again changes nothing more
	Ends  Effect = "ends"  // ends or removes something for good: the same call again changes nothing more
	Acts  Effect = "acts"  // has a program do something, which can be anything
)

// Kind is a kind of object that rights are held on.
type Kind string

// The kinds. Any stands for no object in particular: the right is needed on *.
const (
	Any     Kind = "*"
	Session Kind = "session"
	Window  Kind = "window"
	Pane    Kind = "pane"
)

// Largest is the largest integer of the protocol, 2^53-1.
const Largest = 1<<53 - 1

// Param is one parameter of a verb.
type Param struct {
	Name     string   `json:"name"`
	Summary  string   `json:"summary"`
	Type     Type     `json:"type"`
	Required bool     `json:"required,omitempty"`
	Min      *int64   `json:"min,omitempty"` // of an Integer, both inclusive
	Max      *int64   `json:"max,omitempty"`
	Default  any      `json:"default,omitempty"`
	Choices  []string `json:"choices,omitempty"`
	Elem     Type     `json:"elem,omitempty"` // of an Array, or of an Object's values
	// MaxBytes is how many bytes of UTF-8 a String may have, or all strings of an
	// Array or an Object with one more for the end of each; 0: what the frame holds.
	MaxBytes int `json:"max_bytes,omitempty"`
}

// Field is one field of a result.
type Field struct {
	Name     string   `json:"name"`
	Type     Type     `json:"type"`
	Summary  string   `json:"summary,omitempty"`
	Optional bool     `json:"optional,omitempty"`
	Choices  []string `json:"choices,omitempty"`
	Elem     Type     `json:"elem,omitempty"`   // of an Array
	Fields   []Field  `json:"fields,omitempty"` // of an Object, or of an Array's objects
}

// Failure is an error that a verb declares beyond those every verb may have.
type Failure struct {
	Code string `json:"code"`
	When string `json:"when"`
}

// RightIf says that a verb needs another right when a parameter has a value.
type RightIf struct {
	Param string `json:"param"` // a String
	Value string `json:"value"`
	Right Right  `json:"right"`
}

// Verb is one verb.
type Verb struct {
	Name     string    `json:"name"` // kind.verb_words, or one word
	Summary  string    `json:"summary"`
	Right    Right     `json:"right,omitempty"`
	RightIf  *RightIf  `json:"right_if,omitempty"` // the right that some calls need instead
	On       Kind      `json:"on,omitempty"`       // what Right is needed on
	Filter   bool      `json:"filter,omitempty"`   // lists what the caller may read, and is denied to nobody
	Effect   Effect    `json:"effect,omitempty"`   // empty for Reads of who needs no more than Read
	Notes    string    `json:"notes,omitempty"`    // how to use it, in sentences
	Streams  bool      `json:"streams,omitempty"`
	Binary   bool      `json:"binary,omitempty"` // behind the answer the connection speaks binary frames; no MCP tool
	Params   []Param   `json:"params,omitempty"`
	Result   []Field   `json:"result,omitempty"`
	Item     []Field   `json:"item,omitempty"` // of a stream
	Failures []Failure `json:"errors,omitempty"`
}

// Find returns the verb of that wire name, or nil.
func Find(name string) *Verb {
	for i := range Verbs {
		if Verbs[i].Name == name {
			return &Verbs[i]
		}
	}
	return nil
}

// Param returns the parameter of that name, or nil.
func (v *Verb) Param(name string) *Param {
	for i := range v.Params {
		if v.Params[i].Name == name {
			return &v.Params[i]
		}
	}
	return nil
}

// Needs returns the right that a call with these parameters needs. They are not
// checked yet: a parameter that is no string changes nothing.
func (v *Verb) Needs(params map[string]json.RawMessage) Right {
	if v.RightIf != nil {
		var s string
		if json.Unmarshal(params[v.RightIf.Param], &s) == nil && s == v.RightIf.Value {
			return v.RightIf.Right
		}
	}
	return v.Right
}

// Changes returns the effect of v. A verb that does not say what it does with a
// right to write or manage is taken to act.
func (v *Verb) Changes() Effect {
	switch {
	case v.Effect != "":
		return v.Effect
	case v.Right == None || v.Right == Read:
		return Reads
	}
	return Acts
}

// Shows says whether what v answers holds what programs wrote, and so may be
// sensitive and is nothing to obey.
func (v *Verb) Shows() bool { return v.Right == Read && v.On == Pane }

// Command returns the words of the CLI command for v: pane.capture_rows is
// "pane", "capture-rows".
func (v *Verb) Command() []string {
	return strings.Split(strings.ReplaceAll(v.Name, "_", "-"), ".")
}

// Tool returns the MCP tool name of v: "." becomes "_d" and "_" becomes "__".
func (v *Verb) Tool() string {
	return strings.NewReplacer("_", "__", ".", "_d").Replace(v.Name)
}
