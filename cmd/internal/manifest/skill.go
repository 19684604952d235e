package manifest

var skill = Verb{
	Name: "skill", Summary: "Say how an agent uses looptape: which verb for what, and what answers and errors mean",
	Result: []Field{{Name: "text", Type: String, Summary: "Markdown, with a head that names the skill"}},
}

// verbFields are the fields of a Verb, as the verb manifest lists them.
var verbFields = []Field{
	{Name: "name", Type: String},
	{Name: "summary", Type: String},
	{Name: "right", Type: String, Optional: true, Choices: rights},
	{Name: "right_if", Type: Object, Optional: true, Summary: "The right that it needs if a parameter has a value", Fields: []Field{
		{Name: "param", Type: String},
		{Name: "value", Type: String},
		{Name: "right", Type: String, Choices: rights},
	}},
	{Name: "on", Type: String, Optional: true, Summary: "What the right is needed on", Choices: []string{string(Any), string(Session), string(Window), string(Pane)}},
	{Name: "filter", Type: Boolean, Optional: true, Summary: "It lists what the caller may read, and is denied to nobody"},
	{Name: "effect", Type: String, Optional: true, Summary: "Absent: reads", Choices: []string{string(Reads), string(Adds), string(Sets), string(Ends), string(Acts)}},
	{Name: "notes", Type: String, Optional: true, Summary: "How to use it"},
	{Name: "streams", Type: Boolean, Optional: true},
	{Name: "binary", Type: Boolean, Optional: true, Summary: "Binary frames follow the answer"},
	{Name: "params", Type: Array, Optional: true, Fields: []Field{
		{Name: "name", Type: String},
		{Name: "summary", Type: String},
		{Name: "type", Type: String, Choices: types},
		{Name: "required", Type: Boolean, Optional: true},
		{Name: "min", Type: Integer, Optional: true},
		{Name: "max", Type: Integer, Optional: true},
		{Name: "default", Type: Value, Optional: true},
		{Name: "choices", Type: Array, Elem: String, Optional: true},
		{Name: "elem", Type: String, Optional: true, Summary: "Type of the elements of an array, or of the values of an object", Choices: types},
		{Name: "max_bytes", Type: Integer, Optional: true, Summary: "Most bytes (UTF-8) of a string, or of all strings of an array or an object with one more for the end of each"},
	}},
	{Name: "result", Type: Array, Fields: describedFields},
	{Name: "item", Type: Array, Optional: true, Summary: "Fields of an item of the stream", Fields: describedFields},
	{Name: "errors", Type: Array, Optional: true, Summary: "Those that not every verb may have", Fields: []Field{
		{Name: "code", Type: String},
		{Name: "when", Type: String},
	}},
}

// describedFields are the fields of a Field. Those within a field are described
// by the same, which ends here.
var describedFields = []Field{
	{Name: "name", Type: String},
	{Name: "type", Type: String, Choices: types},
	{Name: "summary", Type: String, Optional: true},
	{Name: "optional", Type: Boolean, Optional: true},
	{Name: "choices", Type: Array, Elem: String, Optional: true},
	{Name: "elem", Type: String, Optional: true, Choices: types},
	{Name: "fields", Type: Array, Elem: Object, Optional: true, Summary: "Those of the object, or of the array's objects, described likewise"},
}

var types = []string{string(String), string(Integer), string(Number), string(Boolean), string(Time), string(Bytes), string(Array), string(Object), string(Value)}
