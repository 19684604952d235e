package manifest

// screenFields are what pane.capture and pane.capture_at say of a screen.
var screenFields = []Field{
	{Name: "pane", Type: String},
	screenField,
	{Name: "epoch", Type: Integer},
	{Name: "offset", Type: Integer, Summary: "The screen is that after exactly this many bytes of the stream"},
	{Name: "cols", Type: Integer},
	{Name: "rows", Type: Integer},
	{Name: "cursor", Type: Object, Fields: []Field{
		{Name: "col", Type: Integer, Summary: "Column, from 0"},
		{Name: "row", Type: Integer, Summary: "Row of the screen, from 0"},
		{Name: "visible", Type: Boolean},
	}},
	{Name: "title", Type: String},
	{Name: "text", Type: String, Summary: "rows lines of cols columns, joined by LF"},
}

var captureAt = Verb{
	Name: "pane.capture_at", Summary: "Read the screen as it was at a byte offset or at a time",
	Right: Read, On: Pane,
	Params: []Param{
		paneParam("Pane to read"),
		{Name: "offset", Summary: "The screen after exactly this many bytes of the stream; exactly one of offset and time", Type: Integer, Min: at(0), Max: at(Largest)},
		{Name: "time", Summary: "The screen at this time: RFC 3339, or how long ago, such as -30s or -1d; exactly one of offset and time", Type: String},
	},
	Result: append(screenFields[:len(screenFields):len(screenFields)],
		Field{Name: "time", Type: Time, Summary: "When the last byte or mark in front of the place was recorded"}),
	Failures: []Failure{noPane, damaged,
		{Code: "invalid_params.at", When: "not exactly one of offset and time is given"},
		{Code: "invalid_params.time", When: "the time cannot be read"},
		{Code: "not_found.offset", When: "the offset is no longer retained, or not reached yet"},
		{Code: "not_found.time", When: "nothing that was recorded by then is retained"},
		{Code: "not_found.gap", When: "the offset lies inside a gap of the recording"},
		{Code: "unsupported.result_size", When: "the screen does not fit the frame"},
	},
}
