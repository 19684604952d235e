package manifest

// How long the texts are that the daemon keeps of sessions and panes. A record
// holds them, up to six times as long in JSON, and a respawn two of each.
const (
	// MaxName is the longest name of a session, in bytes.
	MaxName = 4096
	// MaxPath is the longest path of a directory, in bytes: PATH_MAX of Linux.
	MaxPath = 4096
	// MaxArgs is how many bytes all arguments may have, or the whole environment, the
	// NUL of each included: ARG_MAX of Linux.
	MaxArgs = 2 << 20
	// MaxListed is how many bytes of JSON a list of panes shows of a program's
	// arguments.
	MaxListed = 1024
)

var tooLong = Failure{Code: "limit.record", When: "what is to be kept of it is longer than a record of the store, 16 MiB"}
