package manifest

var search = Verb{
	Name: "pane.search", Summary: "Find lines of the transcript by a pattern, erased and scrolled-off ones included",
	Right: Read, On: Pane,
	Params: []Param{
		paneParam("Pane to search"),
		{Name: "pattern", Summary: "What to find, in RE2 syntax; each line is matched by itself, and (?i) ignores case", Type: String, Required: true},
		{Name: "from", Summary: "Only lines that were written behind this byte offset; excludes from_time", Type: Integer, Min: at(0), Max: at(Largest)},
		{Name: "to", Summary: "Only what was written up to this byte offset; excludes to_time", Type: Integer, Min: at(0), Max: at(Largest)},
		{Name: "from_time", Summary: "Only lines that were written after this time: RFC 3339, or how long ago, such as -5m or -1d", Type: String},
		{Name: "to_time", Summary: "Only what was written up to this time", Type: String},
		{Name: "limit", Summary: "Most matches in one answer", Type: Integer, Min: at(1), Max: at(10000), Default: 100},
		{Name: "cursor", Summary: "Cursor of an answer that said more, with the same pattern and without a range", Type: String},
	},
	Result: []Field{
		{Name: "pane", Type: String},
		{Name: "matches", Type: Array, Fields: []Field{
			{Name: "offset", Type: Integer, Summary: "Offset behind the last write to the line: pane.capture_at shows the screen there"},
			{Name: "time", Type: Time, Optional: true, Summary: "When that was, unless it is no longer retained"},
			{Name: "line", Type: String, Summary: "The whole line, joined where it wrapped"},
			{Name: "epoch", Type: Integer, Optional: true},
			{Name: "row", Type: Integer, Optional: true, Summary: "Its first row in epoch, the current one, if it still has one"},
		}},
		{Name: "from", Type: Integer, Summary: "Offset from which on this answer looked"},
		{Name: "offset", Type: Integer, Summary: "Offset up to which it looked"},
		{Name: "missed_bytes", Type: Integer, Summary: "Bytes of the range asked for that are not in the log: evicted ones, and gaps"},
		{Name: "more", Type: Boolean, Summary: "There is more to look through: go on with cursor"},
		{Name: "cursor", Type: String, Optional: true},
	},
	Failures: []Failure{noPane, damaged,
		{Code: "invalid_params.pattern", When: "the pattern is no RE2 expression, longer than 4096 bytes, or repeats so much that it has more than 10000 parts"},
		{Code: "invalid_params.search", When: "an end of the range is given twice, or a cursor together with a range"},
		{Code: "invalid_params.time", When: "a time cannot be read"},
		{Code: "not_found.offset", When: "the range begins behind the end of the stream"},
		{Code: "invalid_params.cursor", When: "the cursor is malformed, of another version, damaged, or belongs to another pane or pattern"},
		{Code: "unsupported.result_size", When: "a line alone does not fit the frame"},
	},
}
