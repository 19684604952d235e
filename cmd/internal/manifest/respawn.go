package manifest

var respawn = Verb{
	Name: "pane.respawn", Summary: "Start a program again in a pane whose program has ended; the recording goes on behind a mark",
	Right: Manage, On: Pane, Effect: Acts,
	Params: []Param{
		paneParam("Pane to run a program in: an exited one, or an archive"),
		{Name: "argv", Summary: "Program and arguments; default: those of before", Type: Array, Elem: String, MaxBytes: MaxArgs},
		{Name: "cwd", Summary: "Working directory of the program, an absolute path; default: that of before", Type: String, MaxBytes: MaxPath},
		{Name: "env", Summary: "Variables set in the program's environment, over the daemon's: the environment of before is not kept", Type: Object, Elem: String, MaxBytes: MaxArgs},
		{Name: "clean_env", Summary: "Make env the whole environment, without the daemon's", Type: Boolean, Default: false},
	},
	Result: []Field{
		{Name: "pane", Type: String},
		{Name: "offset", Type: Integer, Summary: "Offset of the stream at which the program begins"},
	},
	Failures: []Failure{noPane, damaged,
		{Code: "conflict.state", When: "the pane runs its program, or its window was killed"},
		{Code: "invalid_params.argv", When: "the program cannot be started: not found, or not executable; or the pane was imported, and none is given"},
		{Code: "invalid_params.cwd", When: "the working directory cannot be entered, or is no absolute path"},
		{Code: "invalid_params.env", When: "a variable cannot be set"},
		{Code: "unavailable.storage", When: "the disk takes nothing"},
		slowStart, tooLong,
		{Code: "limit.panes", When: "the daemon runs as many panes as it can"},
	},
}
