package manifest

var wait = Verb{
	Name: "pane.wait", Summary: "Wait until a pattern is printed, a command ends, the program exits or is quiet",
	Right: Read, On: Pane,
	Params: []Param{
		paneParam("Pane to wait for"),
		{Name: "cursor", Summary: "Look behind this cursor, of an earlier wait or of pane.capture_since; excludes since", Type: String},
		{Name: "since", Summary: "Look behind this byte offset; default: behind what the pane has written so far", Type: Integer, Min: at(0), Max: at(Largest)},
		{Name: "pattern", Summary: "Until a line of the text has this, in RE2 syntax; escape sequences are not part of it", Type: String},
		{Name: "command", Summary: "Until the shell says that a command has ended (OSC 133)", Type: Boolean, Default: false},
		{Name: "exit", Summary: "Until the program has exited; a wait also ends so when nothing more can come", Type: Boolean, Default: false},
		{Name: "quiet_ms", Summary: "Until nothing was written for so long, in milliseconds", Type: Integer, Min: at(0), Max: at(30000)},
		{Name: "timeout_ms", Summary: "Give up after so long, in milliseconds; wait again from the cursor of the answer", Type: Integer, Min: at(0), Max: at(30000), Default: 30000},
	},
	Result: []Field{
		{Name: "pane", Type: String},
		{Name: "reason", Type: String, Summary: "Why the wait ended: what came first in the stream", Choices: []string{"pattern", "exit", "command", "quiet", "timeout"}},
		{Name: "matched", Type: Object, Optional: true, Fields: []Field{
			{Name: "start", Type: Integer, Summary: "Offset of the first byte of the match, or of the command's output"},
			{Name: "end", Type: Integer, Summary: "Offset behind the last one"},
			{Name: "line", Type: String, Summary: "The line as far as it was printed, or the command"},
		}},
		{Name: "exit", Type: Integer, Optional: true, Summary: "Exit code of the command"},
		{Name: "cursor", Type: String, Summary: "Where the next wait, or pane.capture_since, goes on: it misses and repeats no match"},
		{Name: "offset", Type: Integer, Summary: "Offset of the cursor"},
		{Name: "missed", Type: Boolean, Summary: "Bytes behind the place asked for are not in the log"},
		{Name: "missed_bytes", Type: Integer, Summary: "How many"},
	},
	Failures: []Failure{noPane, damaged,
		{Code: "invalid_params.since", When: "cursor and since are both given"},
		{Code: "invalid_params.cursor", When: "the cursor is malformed, of another version, damaged, or another pane's"},
		{Code: "invalid_params.pattern", When: "the pattern is no RE2 expression, longer than 4096 bytes, or repeats so much that it has more than 10000 parts"},
		{Code: "invalid_params.wait", When: "quiet_ms is above timeout_ms"},
		{Code: "conflict.respawned", When: "the cursor is from before a respawn"},
	},
}

var commands = Verb{
	Name: "pane.commands", Summary: "List the commands that a shell ran, with their output's place and exit codes",
	Right: Read, On: Pane,
	Params: []Param{
		paneParam("Pane whose shell marks its commands (OSC 133, see 'looptape shell-integration')"),
		{Name: "limit", Summary: "Most commands in one answer, the newest", Type: Integer, Min: at(1), Max: at(1000), Default: 50},
		{Name: "before", Summary: "Only commands that had ended by this offset: from of the answer before", Type: Integer, Min: at(0), Max: at(Largest)},
	},
	Result: []Field{
		{Name: "pane", Type: String},
		{Name: "commands", Type: Array, Summary: "Oldest first", Fields: []Field{
			{Name: "start", Type: Integer, Summary: "Offset of the first byte of the output"},
			{Name: "end", Type: Integer, Optional: true, Summary: "Offset behind the last one; missing while the command runs"},
			{Name: "command", Type: String, Optional: true, Summary: "What was run, if the shell tells it"},
			{Name: "exit", Type: Integer, Optional: true, Summary: "Exit code, if the shell told it, and no bytes are missing that another command may have begun in"},
			{Name: "duration_seconds", Type: Number, Optional: true},
			{Name: "cwd", Type: String, Optional: true, Summary: "Directory it was run in, if the shell tells it; of another host as file://HOST/PATH"},
		}},
		{Name: "from", Type: Integer, Summary: "How far back this answer goes"},
		{Name: "more", Type: Boolean, Summary: "There may be older ones: ask again with before"},
	},
	Failures: []Failure{noPane, damaged, {Code: "unsupported.result_size", When: "one command alone does not fit the frame"}},
}
