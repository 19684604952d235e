// Package daemon is looptape's server: it owns a state directory, the panes in
// it, and the socket on which they are reached.
//
// # The state directory
//
//	store/          the log of every pane, and the records of sessions and windows
//	owner.token     who bears it is the owner
//	grants.json     named tokens and what they, and unknown callers, may do
//	audit.jsonl     one line for each denial
//	daemon.log      of a daemon that was started in the background
//	looptape.sock   the socket
//
// The directory is 0700 and the files are 0600. One daemon at a time owns it:
// the store's lock decides.
//
// # A request
//
// It is decided in a fixed order (contract.md, section 3): is it well formed,
// may the caller, are the parameters right, does the object exist, and only
// then what the verb itself says. The order and the rights come from the
// manifest; each verb is a file of this package, and holds only the last step.
//
// # Panes
//
// A pane is live (package recorder) or an archive. An archive is hydrated when
// it is first read, at most two at a time, and the terminals of the eight read
// last are kept. When the daemon starts after a crash, the logs of panes that
// were live are continued by a gap and a mark when they are first touched. A
// respawn makes a live pane of an archive again (respawn.go).
//
// # Attachments
//
// Behind the answer to pane.attach a connection speaks the frames of package attach
// (attachment.go). It is bound to one program: its end, or a respawn, ends it. writers
// decides from the viewports of those who type how large a pane is.
//
// # Events
//
// What happens goes from the loops of the panes, the store and the verbs to the hub
// (hub.go), which numbers it and keeps the newest 8192. Who follows takes it from
// there: a client that does not read holds up nobody. A verb that reads causes none.
//
// The package reads no terminal and no log by itself: package capture does.
package daemon
