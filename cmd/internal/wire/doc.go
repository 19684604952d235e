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
//	in flight   at most 64 requests a connection; further frames are not read
//	            until one of them ends
//	queue       at most 64 frames to a client; a client that reads nothing for
//	            30 s is dropped
//
// Answers come in the order in which requests end. cancel {"id":N} ends a
// request early. A frame that is no request (bad JSON, too long, no hello) is
// answered by a protocol.* error with a null id, and the connection is closed:
// behind it nobody knows where the next frame starts.
//
// # Text
//
// Strings escape what JSON requires and nothing else, so that the length of a
// frame follows from the length of its text (seed 000, section 5). [Marshal]
// and [StringLen] are the two halves of that rule.
//
// The package knows frames, ids and errors. It knows no verb but hello and
// cancel, and no rights: what a request means is the [Handler]'s business.
package wire
