// Package wire is the protocol between looptape's daemon and its clients:
// newline-delimited JSON on a stream socket.
//
// # Frames
//
// A frame is one JSON object on one line; its size counts the final LF. The
// first frame of a connection is hello, which agrees on max_frame: the largest
// frame that either side may send from then on.
//
//	client  {"id":N,"verb":V,"params":{...}}
//	server  {"id":N,"ok":{...}}                    the answer, or
//	        {"id":N,"error":{"code","message","data"?}}
//	        {"id":N,"item":{...}}                  of a stream, before its ok
//
//	max_frame   default 1048576, lowest 4096, ceiling 67108864 (bytes)
//	id          integer, 0 .. 2^53-1, chosen by the client, one request at a time
//	params      at most 64 names; a line with more is no request
//	in flight   at most 64 requests a connection, their lines together at most
//	            its memory (below); one more is answered limit.requests
//	memory      of a connection two frames, at least 8 MiB; of all connections
//	            384 MiB; and 64 KiB a connection for what needs no handler
//	a client that reads no answers
//	            is dropped after 30 s; after 1 s when others wait for memory and
//	            it holds more than 1/1024 of it
//	stop        clients have 1 s to read what is left
//	half close  a client that sends no more has 40 s to get its answers; one that
//	            went away loses them at once (Linux)
//
// Answers come in the order in which requests end. cancel {"id":N} ends a
// request early. A frame that is no request (bad JSON, too long, no hello) is
// answered by a protocol.* error with a null id, and the connection is closed:
// behind it nobody knows where the next frame starts. A client that is not served
// at all is told so in the same way ([Refuse]). An error that does not fit
// max_frame is answered without its data, and with 512 bytes of its message.
//
// # Memory
//
// A request that runs has a whole frame reserved, of its connection's memory and
// of that of all; an answer or an item takes what it is long until it is written.
// So no handler runs ahead of what its client reads, and those of a client with
// frames of 64 MiB run two at a time, of all such clients five. A handler that
// waits therefore does so within [Call.Wait], which gives the frame back
// meanwhile; between the items of a stream [Call.Item] does. There is no
// deadlock: the connection's memory is taken first and that of all second, and
// whoever waits for one holds nothing of it. A handler may take more than a frame
// for a moment, while it and encoding/json work. What clients send is bounded a
// connection, not in all: 64 MiB for the line that is being read and 128 MiB for
// requests in flight, if it asked for such frames.
//
// # Taking over
//
// Behind the answer to some verbs ([Handler.TakesOver]) a connection carries no more
// lines but what the handler likes, both ways, until it is closed ([Takeover],
// [TakeOver]). Such a request is refused, conflict.connection, while others are in
// flight on the connection, and none is read behind it. A client that reads nothing
// is then waited for: it holds nothing that grows. What is reserved for it counts as
// before.
//
// # Text
//
// Strings escape what JSON requires and nothing else (but a json.RawMessage keeps
// the escapes that it has), so that the length of a frame follows from the length
// of its text (seed 000, section 5). [Marshal] and [StringLen] are the two halves
// of that rule.
//
// The package knows frames, ids and errors. It knows no verb but hello and
// cancel, and no rights: what a request means is the [Handler]'s business.
package wire
