package manifest

var export = Verb{
	Name: "pane.export", Summary: "Write out the recording of a pane, or a part of it",
	Right: Read, On: Pane, Streams: true,
	Notes: `A range is given by offsets, by times, or by a command; text, ansi and html have the lines of pane.search in it, raw its bytes, and an asciicast begins with the screen of where it begins. A transcript has a rule line where bytes are missing, raw has nothing there; the result counts them. An asciicast holds UTF-8 only: other bytes are U+FFFD in it, as the terminal shows them; it has sizes, exits (in v2 as markers), and markers where the recording restarts, another program begins, or bytes are missing. Where the log has lost its beginning, its first event redraws the screen of then.`,
	Params: []Param{
		paneParam("Pane to export"),
		{Name: "format", Summary: "text: the transcript, each line once; ansi: with its colours, safe to show; html: as a page; raw: the exact bytes; asciicast: a v3 recording with times and sizes; asciicast-v2: the older one", Type: String, Choices: []string{"text", "ansi", "html", "raw", "asciicast", "asciicast-v2"}, Default: "text"},
		{Name: "from", Summary: "Offset of the stream to begin at; excludes from_time; default: where the log begins", Type: Integer, Min: at(0), Max: at(Largest)},
		{Name: "to", Summary: "Offset of the stream to end at; excludes to_time; default: where the pane is", Type: Integer, Min: at(0), Max: at(Largest)},
		{Name: "from_time", Summary: "Begin behind what was written by this time: RFC 3339, or how long ago, such as -5m or -1d", Type: String},
		{Name: "to_time", Summary: "End behind what was written by this time", Type: String},
		{Name: "command", Summary: "The output of a command of the shell: -1 is the newest, -2 the one before it; excludes the other ends of a range", Type: Integer, Min: at(-10000), Max: at(-1)},
	},
	Item: []Field{
		{Name: "data", Type: Bytes, Optional: true, Summary: "Up to 49152 bytes of the export"},
		{Name: "offset", Type: Integer, Optional: true, Summary: "With data: how far in the stream the export has come"},
		{Name: "from", Type: Integer, Optional: true, Summary: "In the first item, which has no data: offset of the stream at which the export begins"},
		{Name: "to", Type: Integer, Optional: true, Summary: "In the first item: offset at which it ends"},
	},
	Result: []Field{
		{Name: "pane", Type: String},
		{Name: "from", Type: Integer, Summary: "Offset of the first byte of the stream that is exported"},
		{Name: "offset", Type: Integer, Summary: "Offset behind the last one"},
		{Name: "missed_bytes", Type: Integer, Summary: "Bytes of the range asked for that are not in the log: in front of from, and where the export marks them as missing"},
	},
	Failures: []Failure{noPane, damaged,
		{Code: "not_found.evicted", When: "the range ends before the log begins"},
		{Code: "not_found.offset", When: "the range begins behind the end of the stream"},
		{Code: "not_found.command", When: "there is no such command: the shell has to mark its commands"},
		{Code: "invalid_params.export", When: "an end of the range is given twice, or the range ends before it begins"},
		{Code: "invalid_params.time", When: "a time cannot be read"},
		{Code: "limit.exports", When: "32 are under way already"},
	},
}
