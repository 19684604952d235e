package manifest

// eventNames are the kinds of events, see events.
var eventNames = []string{
	"created", "exited", "resized", "title", "bell", "cwd", "command", "archived",
	"gap", "evicted", "respawned", "closed", "deleted", "missed",
}

var events = Verb{
	Name: "events", Summary: "Follow what happens: what is created and ends, titles, bells, marks of commands, gaps; never caused by reading",
	Right: Read, On: Pane, Filter: true, Streams: true,
	Params: []Param{
		{Name: "after", Summary: "Begin behind the event of this number, 0: with the oldest one that is kept (8192 are); default: with the next one that happens", Type: Integer, Min: at(0), Max: at(Largest)},
		{Name: "limit", Summary: "End after so many events; default: never", Type: Integer, Min: at(1), Max: at(8192)},
		{Name: "wait_ms", Summary: "End once what there is has been told, and wait at most this long for a first event, in milliseconds; default: go on until cancelled", Type: Integer, Min: at(0), Max: at(30000)},
	},
	Item: []Field{
		{Name: "seq", Type: Integer, Summary: "Number of the event. Numbers grow, also over restarts; those of events that the caller may not read are left out"},
		{Name: "ts", Type: Time, Summary: "When it happened"},
		{Name: "event", Type: String, Choices: eventNames, Summary: "created and closed: a session, a window, or a pane (from which no more bytes can come then); archived: a pane of an earlier daemon, or one that is no longer recorded; gap: bytes are not recorded; evicted: the oldest bytes went; missed: in place of events that are no longer kept. One of"},
		{Name: "resource", Type: String, Summary: "What it happened to, as in session:s0, window:w0, pane:p0; * for missed"},
		{Name: "data", Type: Object, Fields: []Field{
			{Name: "session", Type: String, Optional: true, Summary: "created: what the window or pane is in"},
			{Name: "window", Type: String, Optional: true},
			{Name: "pane", Type: String, Optional: true},
			{Name: "name", Type: String, Optional: true, Summary: "Of a session that is created, if it takes at most 1024 bytes as JSON"},
			{Name: "offset", Type: Integer, Optional: true, Summary: "Offset of the stream behind what happened; of a closed gap its end"},
			{Name: "count", Type: Integer, Optional: true, Summary: "bell, title, cwd, command: the event stands for so many of its kind, and is the last of them; 1 if absent. 64 come singly, then ten a second"},
			{Name: "title", Type: String, Optional: true},
			{Name: "cwd", Type: String, Optional: true, Summary: "As the program reported it (OSC 7)"},
			{Name: "mark", Type: String, Optional: true, Choices: []string{"prompt", "input", "output", "end"}, Summary: "command: OSC 133 A, B, C or D"},
			{Name: "exit", Type: Object, Optional: true, Fields: exitFields, Summary: "exited: how; command: the exit code, if the shell gives it with the end"},
			{Name: "cols", Type: Integer, Optional: true},
			{Name: "rows", Type: Integer, Optional: true},
			{Name: "epoch", Type: Integer, Optional: true, Summary: "resized: the epoch from there on"},
			{Name: "gap", Type: String, Optional: true, Choices: []string{"open", "closed"}, Summary: "From offset on nothing is recorded, or it is again"},
			{Name: "bytes", Type: Integer, Optional: true, Summary: "gap: how many are missing before offset; evicted: how many went"},
			{Name: "oldest", Type: Integer, Optional: true, Summary: "evicted: the lowest offset that the log retains"},
			{Name: "missed", Type: Integer, Optional: true, Summary: "missed: how many events of this daemon are no longer kept, readable or not"},
			{Name: "restarted", Type: Boolean, Optional: true, Summary: "missed: after is a number of an earlier daemon, and what it told last is unknown"},
		}},
	},
	Result: []Field{
		{Name: "after", Type: Integer, Summary: "What to pass as after next time"},
		{Name: "missed", Type: Integer, Summary: "Sum of the events missed, see the item"},
		{Name: "restarted", Type: Boolean, Optional: true},
		{Name: "more", Type: Boolean, Summary: "True if limit ended the answer and there are later events, readable or not"},
	},
}
