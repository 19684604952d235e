package manifest

var paneImport = Verb{
	Name: "pane.import", Summary: "Make an archive of another recorder's asciicast (version 2 or 3), which comes in pieces",
	Right: Manage, On: Session, Effect: Adds,
	Notes: `The first call answers import, which the calls behind it pass; the last one says end, and answers the pane. "looptape import FILE" does it all. Until then nobody sees anything of it, and nothing stays if the connection, the token, the daemon or the file fails, or if nothing comes for ten minutes: at most four are under way on all connections. Times, sizes, markers and the exit are those of the file; without a timestamp in its header it begins now. What was typed (events of kind i) is left out. Only the newest retain bytes of a long recording are kept. The pane is read like any archive; it runs nothing unless pane.respawn is given an argv.`,
	Params: []Param{
		sessionParam("Session that the pane is to belong to"),
		{Name: "import", Summary: "What the first call answered; absent in that", Type: String},
		{Name: "data", Summary: "The next piece of the file", Type: Bytes},
		{Name: "end", Summary: "The file ends behind this piece", Type: Boolean, Default: false},
		{Name: "scrollback", Summary: "In the first call: rows of history that the terminal keeps; the log keeps everything", Type: Integer, Min: at(0), Max: at(1000000), Default: 10000},
		{Name: "retain", Summary: "In the first call: bytes of the stream that the log keeps at least; older ones go in whole spans", Type: Integer, Min: at(4 << 20), Max: at(Largest), Default: 256 << 20},
	},
	Result: []Field{
		{Name: "import", Type: String, Optional: true, Summary: "What to pass with the next piece; absent at the end"},
		{Name: "session", Type: String},
		{Name: "window", Type: String, Optional: true, Summary: "At the end"},
		{Name: "pane", Type: String, Optional: true, Summary: "At the end"},
		{Name: "lines", Type: Integer, Summary: "Lines of the file so far"},
		{Name: "offset", Type: Integer, Summary: "Bytes of output so far"},
		{Name: "ignored", Type: Integer, Summary: "Events so far that a recording has no place for, such as input"},
	},
	Failures: []Failure{noSession,
		{Code: "invalid_params.cast", When: "the file is no asciicast, or has a value that cannot be; data.line says in which line"},
		{Code: "not_found.import", When: "no such import is under way on this connection and for this session"},
		{Code: "timeout.import", When: "nothing came for it for ten minutes, so that it was dropped; begin again"},
		{Code: "limit.imports", When: "four are under way already"},
		{Code: "unavailable.storage", When: "the disk takes nothing"},
	},
}
