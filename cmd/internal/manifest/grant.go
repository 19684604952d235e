package manifest

var rights = []string{string(Read), string(Write), string(Manage)}

var grantsField = Field{Name: "grants", Type: Array, Summary: "One for each right", Fields: []Field{
	{Name: "right", Type: String, Choices: rights},
	{Name: "scopes", Type: Array, Elem: String},
}}

var grantCreate = Verb{
	Name: "grant.create", Summary: "Make a token for a caller with rights of its own; it is shown once",
	Right: Manage, On: Any, Effect: Adds,
	Params: []Param{
		{Name: "name", Summary: "Name of the caller: 1 to 64 of a-z 0-9 . _ -, beginning with a letter or a digit", Type: String, Required: true},
		{Name: "right", Summary: "Right to grant; none of them implies another", Type: String, Required: true, Choices: rights},
		{Name: "scope", Summary: "What it is granted on: *, session:*, window:*, pane:*, or one object with what is in it, such as session:s0, window:w0 or pane:p0", Type: Array, Elem: String, Required: true},
		{Name: "also", Summary: "Further grants, each a right and a scope, such as 'write pane:p1'", Type: Array, Elem: String},
	},
	Result: []Field{
		{Name: "name", Type: String},
		{Name: "token", Type: String, Summary: "The token, which looptape keeps no copy of"},
		grantsField,
	},
	Failures: []Failure{
		{Code: "invalid_params.name", When: "the name is reserved (owner, unknown) or has other characters"},
		{Code: "invalid_params.scope", When: "a scope, or a further grant, cannot be read, or there is none"},
		{Code: "conflict.name", When: "there is a token of this name"},
		grantsEdited,
		{Code: "limit.grants", When: "the token would have more than 100 scopes, or there are 1000 tokens"},
		{Code: "unavailable.storage", When: "the disk takes nothing"},
	},
}

var grantList = Verb{
	Name: "grant.list", Summary: "List what unknown callers and the bearers of tokens may do; the owner may do everything",
	Right: Manage, On: Any, Effect: Reads,
	Result: []Field{{Name: "grants", Type: Array, Fields: []Field{
		{Name: "name", Type: String},
		{Name: "created", Type: Time, Optional: true},
		grantsField,
	}}, {Name: "more", Type: Boolean, Optional: true, Summary: "True if the rest of the list, or one item by itself, does not fit the frame"}},
}

var grantRevoke = Verb{
	Name: "grant.revoke", Summary: "End the rights of a token at once, also of the calls that it made and that still run",
	Right: Manage, On: Any, Effect: Ends,
	Params: []Param{{Name: "name", Summary: "Name of the caller", Type: String, Required: true}},
	Result: []Field{{Name: "name", Type: String}},
	Failures: []Failure{
		{Code: "not_found.grant", When: "there is no token of this name"},
		{Code: "invalid_params.name", When: "the name is owner or unknown, who have no token to revoke"},
		grantsEdited,
		{Code: "unavailable.storage", When: "the disk takes nothing: the token can no longer be used, but a restart would bring it back"},
	},
}

var grantsEdited = Failure{Code: "conflict.grants", When: "grants.json was edited while the daemon ran, which reads it at its start only"}
