package manifest

var paneAttach = Verb{
	Name: "pane.attach", Summary: "Follow a pane live, and type into it; behind the answer the connection speaks binary frames",
	Right: Read, RightIf: &RightIf{Param: "mode", Value: "write", Right: Write}, On: Pane, Binary: true,
	Params: []Param{
		paneParam("Pane to attach to"),
		{Name: "mode", Summary: "read: follow only; write: type as well, and have a say in the size", Type: String, Choices: []string{"read", "write"}, Default: "read"},
		{Name: "cols", Summary: "Width of the viewport of a writer; with rows", Type: Integer, Min: at(1), Max: at(65535)},
		{Name: "rows", Summary: "Height of the viewport of a writer; with cols", Type: Integer, Min: at(1), Max: at(65535)},
		{Name: "history", Summary: "Send at most this many of the newest rows above the screen", Type: Integer, Min: at(0), Max: at(1000000), Default: 0},
	},
	Result: []Field{
		{Name: "pane", Type: String},
		{Name: "mode", Type: String, Choices: []string{"read", "write"}},
		{Name: "state", Type: String, Choices: paneStates},
		{Name: "backlog_bytes", Type: Integer, Summary: "What may wait for a slow client before it is resynchronised"},
		{Name: "window_bytes", Type: Integer, Summary: "What may be sent and not acknowledged, if the client acknowledges at all"},
	},
	Failures: []Failure{noPane, damaged,
		{Code: "invalid_params.viewport", When: "only one of cols and rows is given"},
		{Code: "conflict.connection", When: "other requests are in flight on the connection"},
		{Code: "limit.cells", When: "cols x rows is above 4194304"},
		{Code: "unsupported.result_size", When: "what rebuilds the screen does not fit the frame"},
		{Code: "conflict.mode", When: "behind the answer: a client that is attached for reading types something"},
		{Code: "conflict.state", When: "behind the answer: something is typed, and the program has exited"},
		{Code: "limit.input", When: "behind the answer: so much waits already for a program that does not read"},
		{Code: "internal.pane", When: "behind the answer: the pane is no longer followed"},
	},
}
