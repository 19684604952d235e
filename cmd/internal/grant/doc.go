// Package grant decides who may do what, and records who was refused.
//
// # Callers
//
// The owner may do everything. Everybody who bears a named token has the grants
// of that token and no others. Whoever bears no token is "unknown". A grant is a
// right on scopes ([Scope] says what each contains); rights do not imply each
// other: who may manage a pane may not read it unless that is granted too. But
// who may manage * makes tokens, and so can get any right.
//
// # Files
//
// They are in the state directory, 0600 from the moment they exist.
//
//	owner.token   the owner's token, for the CLI of the same user to read
//	grants.json   the grants of unknown callers, and the named tokens
//	audit.jsonl   one line for each denial; at 16 MiB it becomes audit.jsonl.1
//
// grants.json is read when the daemon starts and at no other time, and written
// whole, by a new file that takes its place, when a token is made or revoked. It
// may be edited by hand; while the daemon runs it then refuses to write it
// ([ErrEdited]). Without the file unknown callers may read everything.
//
//	{
//	  "version": 1,
//	  "unknown": [{"right": "read", "scopes": ["*"]}],   absent: as here; []: none
//	  "tokens": [{
//	    "name": "ci",                    1 to 64 of a-z 0-9 . _ -, the first no mark
//	    "sha256": "5e88...",             of the token, in hex
//	    "created": "2026-11-30T20:07:52Z",                 may be absent
//	    "grants": [{"right": "write", "scopes": ["pane:p1", "session:s2"]}]
//	  }]
//	}
//
// A file of another shape is refused, by [ErrDamaged] or [ErrNewerVersion], and so
// is a member that this version does not know, a null, and a member or a name that
// comes twice: a slip of whoever edits it must not open what was meant to be
// closed. The file is at most 16 MiB; a daemon makes at most 1000 tokens, each
// with at most 100 scopes.
//
// A token is 256 random bits, so that its plain SHA-256 tells nothing about it:
// there is nothing to guess that a salt or a slow hash would make harder.
//
// # What it does not do
//
// The package knows rights and resources by name only; which verb needs which
// right stands in the manifest. It refuses to write down anything of a request
// but who, what verb, what right and on what. Of the audit log it keeps the newest 16 to
// 32 MiB: who is denied often enough drives older denials out.
package grant
