package manifest

// Verbs is the table of all verbs, in the order in which they are listed.
var Verbs = []Verb{
	{
		Name: "session.create", Summary: "Make a session: a named group of windows",
		Right: Manage, On: Any, Effect: Adds,
		Params: []Param{
			{Name: "name", Summary: "Name of the session; default: its id", Type: String, MaxBytes: MaxName},
			{Name: "provisional", Summary: "It is there, for others and on disk, once it has a window; without one it goes with this connection, and later with the last of its panes that is deleted", Type: Boolean, Default: false},
		},
		Result: []Field{
			{Name: "session", Type: String, Summary: "Id of the session"},
			{Name: "name", Type: String, Summary: "Name of the session"},
		},
	},
	{
		Name: "session.list", Summary: "List the sessions that the caller may read",
		Right: Read, On: Session, Filter: true,
		Result: []Field{{Name: "sessions", Type: Array, Fields: []Field{
			{Name: "session", Type: String},
			{Name: "name", Type: String, Summary: "Its first 4096 bytes, as they are in JSON, and … if that is not all"},
			{Name: "created", Type: Time},
			{Name: "windows", Type: Array, Elem: String, Summary: "Ids of those of its windows that the caller may read, oldest first"},
		}}, {Name: "more", Type: Boolean, Optional: true, Summary: "True if the rest of the list, or one item by itself, does not fit the frame"}},
	},
	{
		Name: "session.kill", Summary: "End the programs of all windows of a session and close it; recordings stay readable",
		Right: Manage, On: Session, Effect: Ends,
		Params:   []Param{sessionParam("Session to kill")},
		Result:   []Field{{Name: "session", Type: String}},
		Failures: []Failure{noSession, noSignal, noEnd},
	},
	{
		Name: "window.create", Summary: "Run a program in a new window: one recorded pane",
		Right: Manage, On: Session, Effect: Acts,
		Notes: `The program gets the environment of the daemon and what env sets, TERM=xterm-256color, COLORTERM=truecolor and LOOPTAPE_PANE, the id of its pane. The answer comes when the beginning of its recording is on disk.`,
		Params: []Param{
			sessionParam("Session that the window belongs to"),
			{Name: "cols", Summary: "Width in columns", Type: Integer, Min: at(1), Max: at(65535), Default: 80},
			{Name: "rows", Summary: "Height in rows", Type: Integer, Min: at(1), Max: at(65535), Default: 24},
			{Name: "argv", Summary: "Program and arguments; default: $SHELL", Type: Array, Elem: String, MaxBytes: MaxArgs},
			{Name: "cwd", Summary: "Working directory of the program, an absolute path; default: the daemon's", Type: String, MaxBytes: MaxPath},
			{Name: "env", Summary: "Variables set in the program's environment, over the daemon's", Type: Object, Elem: String, MaxBytes: MaxArgs},
			{Name: "clean_env", Summary: "Make env the whole environment, without the daemon's", Type: Boolean, Default: false},
			{Name: "scrollback", Summary: "Rows of history that the terminal keeps; the log keeps everything", Type: Integer, Min: at(0), Max: at(1000000), Default: 10000},
			{Name: "retain", Summary: "Bytes of the stream that the log keeps at least; older ones go in whole spans", Type: Integer, Min: at(4 << 20), Max: at(Largest), Default: 256 << 20},
		},
		Result: []Field{
			{Name: "session", Type: String},
			{Name: "window", Type: String},
			{Name: "pane", Type: String},
		},
		Failures: []Failure{noSession,
			{Code: "invalid_params.argv", When: "the program cannot be started: not found, or not executable"},
			{Code: "invalid_params.cwd", When: "the working directory cannot be entered, or is no absolute path"},
			{Code: "invalid_params.env", When: "a variable cannot be set"},
			{Code: "unavailable.storage", When: "the disk takes nothing"},
			slowStart, tooLong,
			{Code: "limit.cells", When: "cols x rows is above 4194304"},
			{Code: "limit.panes", When: "the daemon runs as many programs as it can: 512, or what its ulimit -n allows"},
			{Code: "limit.descriptors", When: "too many files are open in the system"},
			{Code: "limit.processes", When: "the system starts no more processes"},
			{Code: "limit.terminals", When: "the system has no terminal left"},
		},
	},
	{
		Name: "window.list", Summary: "List the windows that the caller may read",
		Right: Read, On: Window, Filter: true,
		Params: []Param{{Name: "session", Summary: "Only those of this session", Type: String}},
		Result: []Field{{Name: "windows", Type: Array, Fields: []Field{
			{Name: "window", Type: String},
			{Name: "session", Type: String},
			{Name: "pane", Type: String},
			{Name: "created", Type: Time},
		}}, {Name: "more", Type: Boolean, Optional: true, Summary: "True if the rest of the list, or one item by itself, does not fit the frame"}},
	},
	{
		Name: "window.kill", Summary: "End the program of a window and close it; its recording stays readable",
		Right: Manage, On: Window, Effect: Ends,
		Params:   []Param{{Name: "window", Summary: "Window to kill", Type: String, Required: true}},
		Result:   []Field{{Name: "window", Type: String}},
		Failures: []Failure{noWindow, noSignal, noEnd},
	},
	{
		Name: "pane.list", Summary: "List the panes that the caller may read, archives included",
		Right: Read, On: Pane, Filter: true,
		Params: []Param{
			{Name: "session", Summary: "Only those of this session", Type: String},
			{Name: "state", Summary: "Only those in this state", Type: String, Choices: paneStates},
		},
		Result: []Field{{Name: "panes", Type: Array, Fields: []Field{
			{Name: "pane", Type: String},
			{Name: "window", Type: String},
			{Name: "session", Type: String},
			{Name: "state", Type: String, Choices: paneStates},
			{Name: "argv", Type: Array, Elem: String, Summary: "The first 1024 bytes, as they are in JSON, and … if that is not all: pane.get has all"},
			{Name: "started", Type: Time},
			{Name: "ended", Type: Time, Optional: true},
			{Name: "exit", Type: Object, Optional: true, Fields: exitFields},
		}}, {Name: "more", Type: Boolean, Optional: true, Summary: "True if the rest of the list, or one item by itself, does not fit the frame"}},
	},
	{
		Name: "pane.get", Summary: "Say what a pane is, runs and holds",
		Right: Read, On: Pane,
		Notes:  `What lies between durable and offset is what a crash of the daemon would lose at this moment; so would a power cut, which under "serve --sync interval=D" takes a little more.`,
		Params: []Param{paneParam("Pane to describe")},
		Result: []Field{
			{Name: "pane", Type: String},
			{Name: "window", Type: String},
			{Name: "session", Type: String},
			{Name: "state", Type: String, Choices: paneStates},
			{Name: "argv", Type: Array, Elem: String},
			{Name: "cwd", Type: String, Summary: "Working directory, as the program last reported it (OSC 7), of another host as file://HOST/PATH; else as it started"},
			{Name: "title", Type: String},
			{Name: "cols", Type: Integer},
			{Name: "rows", Type: Integer},
			screenField,
			{Name: "epoch", Type: Integer},
			{Name: "offset", Type: Integer, Summary: "Bytes of the stream that the terminal has been fed"},
			{Name: "durable", Type: Integer, Summary: "Offset up to which a crash of the daemon loses nothing"},
			{Name: "oldest", Type: Integer, Summary: "Lowest offset that the log retains"},
			{Name: "started", Type: Time},
			{Name: "ended", Type: Time, Optional: true},
			{Name: "exit", Type: Object, Optional: true, Fields: exitFields},
		},
		Failures: []Failure{noPane, damaged},
	},
	{
		Name: "pane.write", Summary: "Type bytes into a pane, as they are",
		Right: Write, On: Pane, Effect: Acts,
		Notes: `A carriage return is Enter. What the bytes cause comes behind the offset that is answered, beginning with their echo.`,
		Params: []Param{
			paneParam("Pane to write to"),
			{Name: "text", Summary: "Text to type; exactly one of text and data", Type: String},
			{Name: "data", Summary: "Bytes to type; exactly one of text and data", Type: Bytes},
		},
		Result: []Field{{Name: "offset", Type: Integer, Summary: "Offset of the stream when the bytes were typed: what they cause comes behind it"}},
		Failures: []Failure{noPane,
			{Code: "invalid_params.write", When: "both or neither of text and data are given"},
			{Code: "conflict.state", When: "the program has exited"},
			{Code: "limit.input", When: "more than 65536 bytes at once, or so many wait for a program that does not read"},
			{Code: "timeout.input", When: "the bytes are queued, but the program has read none of them for 10 s"},
		},
	},
	{
		Name: "pane.send_keys", Summary: "Press keys, paste a text or move the mouse, as the program's modes ask for it",
		Right: Write, On: Pane, Effect: Acts,
		Params: []Param{
			paneParam("Pane to type into"),
			{Name: "keys", Summary: "Names of keys, as tmux and Emacs spell them: a, Enter, C-c, M-x, Up, F5, S-Tab", Type: Array, Elem: String},
			{Name: "paste", Summary: "Text to paste, in brackets if the program asks for that", Type: String},
			{Name: "mouse", Summary: "A mouse event: press, release or move, a button (left, middle, right, wheelup, wheeldown, none), column and row from 0; as in 'press left 10 4'", Type: String},
		},
		Result: []Field{{Name: "offset", Type: Integer, Summary: "Offset of the stream when the bytes were typed: what they cause comes behind it"}},
		Failures: []Failure{noPane,
			{Code: "invalid_params.keys", When: "not exactly one of keys, paste and mouse is given, or it cannot be read"},
			{Code: "conflict.mode", When: "the program does not ask for mouse events"},
			{Code: "conflict.state", When: "the program has exited"},
			{Code: "limit.input", When: "more than 65536 bytes at once, or so many wait for a program that does not read"},
			{Code: "timeout.input", When: "the bytes are queued, but the program has read none of them for 10 s"},
		},
	},
	{
		Name: "pane.resize", Summary: "Set the size of a pane",
		Right: Manage, On: Pane, Effect: Sets,
		Params: []Param{
			paneParam("Pane to resize"),
			{Name: "cols", Summary: "Width in columns", Type: Integer, Required: true, Min: at(1), Max: at(65535)},
			{Name: "rows", Summary: "Height in rows", Type: Integer, Required: true, Min: at(1), Max: at(65535)},
		},
		Result: []Field{
			{Name: "offset", Type: Integer, Summary: "Offset of the stream at which the size changed"},
			{Name: "epoch", Type: Integer},
			{Name: "cols", Type: Integer},
			{Name: "rows", Type: Integer},
		},
		Failures: []Failure{noPane,
			{Code: "conflict.state", When: "the pane's terminal is closed or an archive"},
			{Code: "limit.cells", When: "cols x rows is above 4194304"},
		},
	},
	{
		Name: "pane.kill", Summary: "End the program of a pane; the recording stays readable",
		Right: Manage, On: Pane, Effect: Acts,
		Params: []Param{
			paneParam("Pane whose program to end"),
			{Name: "signal", Summary: "Signal to send, such as TERM or INT; default: HUP, then KILL after 5 s", Type: String},
		},
		Result: []Field{{Name: "pane", Type: String}},
		Failures: []Failure{noPane,
			{Code: "invalid_params.signal", When: "there is no such signal"},
			{Code: "conflict.state", When: "the program has exited"},
			noSignal, noEnd,
		},
	},
	respawn,
	deletePane,
	{
		Name: "pane.capture", Summary: "Read the visible screen as text",
		Right: Read, On: Pane,
		Notes:    `The answer is one instant. What has scrolled off the screen is read by pane.capture_rows.`,
		Params:   []Param{paneParam("Pane to read")},
		Result:   screenFields,
		Failures: []Failure{noPane, damaged, {Code: "unsupported.result_size", When: "the screen does not fit the frame"}},
	},
	captureAt,
	captureRows,
	captureSince,
	search,
	wait,
	commands,
	export,
	paneImport,
	paneAttach,
	{
		Name: "pane.verify", Summary: "Read all of a recording again and check it against its checksums, and its checkpoints against its replay",
		Right: Manage, On: Pane, Streams: true, Effect: Reads,
		Params: []Param{paneParam("Pane to verify")},
		Item: []Field{
			{Name: "kind", Type: String, Choices: []string{"progress", "damage", "drift"}},
			{Name: "offset", Type: Integer, Summary: "progress: everything below was read; else where something is wrong"},
			{Name: "end", Type: Integer, Summary: "progress: where it ends; damage: no screen behind offset and before end can be shown"},
			{Name: "lost_bytes", Type: Integer, Summary: "damage: bytes of the stream from offset on that cannot be read"},
			{Name: "what", Type: String, Optional: true, Summary: "What is wrong"},
		},
		Result: []Field{
			{Name: "pane", Type: String},
			{Name: "from", Type: Integer, Summary: "Offset at which the log begins"},
			{Name: "offset", Type: Integer, Summary: "Offset up to which it was verified"},
			{Name: "frames", Type: Integer, Summary: "Frames read"},
			{Name: "checkpoints", Type: Integer, Summary: "Checkpoints read"},
			{Name: "compared", Type: Integer, Summary: "Those that were compared with what the log before them replays to"},
			{Name: "damages", Type: Integer},
			{Name: "drifts", Type: Integer, Summary: "Checkpoints that differ from the replay"},
			{Name: "lost_bytes", Type: Integer},
			{Name: "sound", Type: Boolean, Summary: "True if nothing is damaged and nothing drifted"},
		},
		Failures: []Failure{noPane},
	},
	events,
	doctor,
	grantCreate,
	grantList,
	grantRevoke,
	{
		Name: "manifest", Summary: "List the verbs, with parameters, results and errors",
		Result: []Field{
			{Name: "manifest_format", Type: Integer},
			{Name: "verbs", Type: Array, Fields: verbFields},
		},
	},
	skill,
}

var captureRows = Verb{
	Name: "pane.capture_rows", Summary: "Read rows of scrollback and screen by (epoch, absolute row), in pages",
	Right: Read, On: Pane,
	Notes: `Use tail for the newest rows. Without a selection it reads all that is retained. What one answer does not hold comes in pages: pass epoch, the next of the page before as start and the end of the first page, until done. conflict.epoch means that the screen was resized, cleared or switched and rows have new numbers: read again with tail. not_found.rows with the reason evicted means that output outran the reader: go on at oldest. Lines are physical rows, padded with spaces to the width of the pane; a line that wrapped is several.`,
	Params: []Param{
		paneParam("Pane to read"),
		{Name: "epoch", Summary: "Row epoch that start and end belong to; required with start or end", Type: Integer, Min: at(0), Max: at(1<<32 - 1)},
		{Name: "start", Summary: "First absolute row (inclusive); default: oldest retained row", Type: Integer, Min: at(0), Max: at(Largest)},
		{Name: "end", Summary: "Absolute row after the last one (exclusive); default: current end", Type: Integer, Min: at(0), Max: at(Largest)},
		{Name: "tail", Summary: "Select at most this many newest rows of the current epoch; excludes epoch, start and end", Type: Integer, Min: at(1), Max: at(Largest)},
		{Name: "max_rows", Summary: "Most rows in this reply", Type: Integer, Min: at(1), Max: at(10000), Default: 1000},
		{Name: "max_bytes", Summary: "Most UTF-8 bytes of line text in this reply", Type: Integer, Min: at(1), Max: at(16777216), Default: 262144},
	},
	Result: []Field{
		{Name: "pane", Type: String, Summary: "The pane read"},
		screenField,
		{Name: "epoch", Type: Integer, Summary: "Row epoch of every row number in this result"},
		{Name: "offset", Type: Integer, Summary: "Pane byte offset the read is as of"},
		{Name: "cols", Type: Integer},
		{Name: "rows", Type: Integer},
		{Name: "bounds", Type: Object, Summary: "Retained rows at the read: [oldest, end), with the screen at [active, end)", Fields: []Field{
			{Name: "oldest", Type: Integer},
			{Name: "active", Type: Integer},
			{Name: "end", Type: Integer},
		}},
		{Name: "start", Type: Integer, Summary: "Absolute row of lines[0]"},
		{Name: "end", Type: Integer, Summary: "End of the selection (exclusive), pinned by the first page"},
		{Name: "next", Type: Integer, Optional: true, Summary: "Start of the next page; present only when done is false"},
		{Name: "done", Type: Boolean, Summary: "True when this page reaches end"},
		{Name: "lines", Type: Array, Elem: String, Summary: "Rows [start, start + len(lines)), oldest first, each exactly cols wide"},
	},
	Failures: []Failure{noPane, damaged,
		{Code: "invalid_params.rows", When: "tail with epoch, start or end; start or end without epoch; end before start"},
		{Code: "not_found.rows", When: "the selection reaches outside the retained rows"},
		{Code: "conflict.epoch", When: "the epoch is not the current one"},
		{Code: "unsupported.result_size", When: "the first row alone does not fit max_bytes or the frame"},
	},
}

var captureSince = Verb{
	Name: "pane.capture_since", Summary: "Read what a pane wrote since a cursor or a byte offset; the first call shows the screen",
	Right: Read, On: Pane,
	Notes: `The first call, with neither cursor nor since, shows the screen and gives a cursor. The cursor of each answer, passed to the next call, gets only what is new, as a stream without escape sequences, not as a screen: a line that is redrawn in place repeats. more says that the limits left something for the next call, missed that output is no longer in the log, closed that nothing can follow. Cursors outlive the daemon, can be used again, and have no side effect.`,
	Params: []Param{
		{Name: "pane", Summary: "Pane to read; optional with a cursor", Type: String},
		{Name: "cursor", Summary: "Cursor of an earlier answer; excludes since", Type: String},
		{Name: "since", Summary: "Byte offset to read from; excludes cursor", Type: Integer, Min: at(0), Max: at(Largest)},
		{Name: "to", Summary: "Stop at this byte offset, as at the end of a command", Type: Integer, Min: at(0), Max: at(Largest)},
		{Name: "command", Summary: "Read the output of this command instead: -1 is the newest that the shell marked; excludes cursor, since and to", Type: Integer, Min: at(-10000), Max: at(-1)},
		{Name: "format", Summary: "text: escape sequences removed; raw: the exact bytes; rows: the rows of the screen and of history that were written since a cursor of format rows", Type: String, Choices: []string{"text", "raw", "rows"}, Default: "text"},
		{Name: "max_bytes", Summary: "Most bytes of text (UTF-8) or of data (decoded)", Type: Integer, Min: at(1), Max: at(16777216), Default: 128000},
		{Name: "max_lines", Summary: "Most lines of text", Type: Integer, Min: at(1), Max: at(Largest), Default: 500},
		{Name: "keep", Summary: "What a limit keeps: head stops early with more, tail keeps the newest with truncated", Type: String, Choices: []string{"head", "tail"}, Default: "head"},
		{Name: "wait_ms", Summary: "Wait this long for something new, in milliseconds", Type: Integer, Min: at(0), Max: at(30000), Default: 0},
	},
	Result: []Field{
		{Name: "pane", Type: String},
		screenField,
		{Name: "epoch", Type: Integer},
		{Name: "from", Type: Integer, Summary: "Offset of the first byte served"},
		{Name: "offset", Type: Integer, Summary: "Offset of the cursor"},
		{Name: "end", Type: Integer, Summary: "Offset of the pane"},
		{Name: "cursor", Type: String, Summary: "What to pass next time"},
		{Name: "first", Type: Boolean, Summary: "True for an answer that shows the screen and starts a cursor"},
		{Name: "missed", Type: Boolean, Summary: "Bytes between the place asked for and from are not in the log"},
		{Name: "missed_bytes", Type: Integer, Summary: "How many"},
		{Name: "truncated", Type: Boolean, Summary: "keep tail left older text out"},
		{Name: "truncated_bytes", Type: Integer, Summary: "Raw bytes left out"},
		{Name: "truncated_lines", Type: Integer, Summary: "Lines of text left out, of the last 16 MiB"},
		{Name: "more", Type: Boolean, Summary: "There is more to read now, or behind the boundary"},
		{Name: "boundary", Type: String, Optional: true, Summary: "Why the answer ends here: another program begins, whose output the next call gives", Choices: []string{"respawn"}},
		{Name: "to", Type: Integer, Optional: true, Summary: "Where the range ends: pass it with the cursor"},
		{Name: "closed", Type: Boolean, Summary: "All was served and nothing more can come"},
		{Name: "elapsed_seconds", Type: Number},
		{Name: "text", Type: String, Optional: true},
		{Name: "data", Type: Bytes, Optional: true},
		{Name: "rows", Type: Array, Optional: true, Summary: "Oldest first; instead of it text is the screen when rows have other numbers now", Fields: []Field{
			{Name: "row", Type: Integer, Summary: "Its number in epoch"},
			{Name: "text", Type: String, Summary: "Without trailing blanks"},
		}},
	},
	Failures: []Failure{noPane, damaged,
		{Code: "not_found.command", When: "the shell marked fewer commands"},
		{Code: "invalid_params.since", When: "cursor and since are both given, or command with one of them"},
		{Code: "invalid_params.cursor", When: "the cursor is malformed, of another version, damaged, or another pane's"},
		{Code: "conflict.respawned", When: "the pane was respawned since the cursor was given"},
	},
}

var (
	paneStates  = []string{"running", "exited", "archived"}
	screenField = Field{Name: "screen", Type: String, Summary: "The screen that was active at the read", Choices: []string{"primary", "alternate"}}
	exitFields  = []Field{
		{Name: "code", Type: Integer, Optional: true},
		{Name: "signal", Type: String, Optional: true},
	}
	noSession = Failure{Code: "not_found.session", When: "there is no such session"}
	noWindow  = Failure{Code: "not_found.window", When: "there is no such window"}
	noPane    = Failure{Code: "not_found.pane", When: "there is no such pane"}
	noSignal  = Failure{Code: "denied.signal", When: "the system does not let the daemon signal the program, which runs as another user: it goes on, whatever was closed; data.pid says which process"}
	noEnd     = Failure{Code: "timeout.kill", When: "the program waits in the kernel, and has not ended 5 s after SIGKILL: it ends when that does; data.pid says which process"}
	slowStart = Failure{Code: "timeout.start", When: "the program has not started for 30 s: it or its directory is on a file system that does not answer"}
	damaged   = Failure{Code: "internal.damaged", When: "the part of the log that the answer needs is damaged"}
)

func paneParam(summary string) Param {
	return Param{Name: "pane", Summary: summary, Type: String, Required: true}
}

func sessionParam(summary string) Param {
	return Param{Name: "session", Summary: summary, Type: String, Required: true}
}

func at(n int64) *int64 { return &n }
