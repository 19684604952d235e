// Package mcp offers looptape's verbs as the tools of an MCP server, on stdin
// and stdout.
//
// The tools are made from the manifest, one for each verb but those of binary frames: the name is
// [manifest.Verb.Tool], the schemas are those of parameters and result (JSON
// Schema, draft 2020-12), the annotations follow from the verb's right and
// effect. Arguments go to the daemon as they came, and it alone checks them: a
// wrong one is answered by the daemon's error object, never by an error of the
// protocol. A result is the daemon's, as structured content and as text; a
// failure has isError and {"error":{"code","message","data"?}} in both.
//
// Three tools are more than their verb: pane.export pages by offset, events
// answers in batches, and capture_since is pane.capture_since with the names of
// fields that the tools of this name have elsewhere.
//
// One connection to the daemon serves all calls. It is made when a call needs
// it, and made again when it broke; a call that only reads is repeated then. An
// MCP request that is cancelled cancels the daemon's. What is in flight when stdin
// ends has a second to be answered.
//
// The package writes nothing but the protocol to stdout. It keeps nothing: every
// answer is the daemon's. Limits: a line from the client is at most 16 MiB, a
// result at most the connection's max_frame (and twice that as a line, since it
// is there twice).
package mcp
