package manifest

var deletePane = Verb{
	Name: "pane.delete", Summary: "Remove the recording of a pane for good, and its window",
	Right: Manage, On: Pane, Effect: Ends,
	Params: []Param{paneParam("Pane whose recording to remove: an exited one, or an archive")},
	Result: []Field{{Name: "pane", Type: String}},
	Notes:  `Nothing brings the recording back. Its disk space is free when the answer comes; its id is not given out again.`,
	Failures: []Failure{noPane, damaged,
		{Code: "conflict.state", When: "the pane runs its program"},
		{Code: "unavailable.storage", When: "the disk takes nothing"},
	},
}
