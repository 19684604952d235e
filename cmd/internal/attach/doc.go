// Package attach is what a connection speaks behind pane.attach's answer: binary
// frames, and a client for them.
//
// # Frames
//
// Integers are big-endian; offsets are of the pane's stream.
//
//	offset  size  of every frame
//	0       4     length of what follows, 1 .. see below (bytes)
//	4       1     type
//	5       -     payload, behind Head bytes
//
//	from the daemon   payload
//	 1 Snapshot       u64 offset, u32 epoch, u16 cols, u16 rows, bytes that show in a
//	                  fresh terminal of that size what the pane shows
//	 2 Output         u64 offset of the first byte, bytes of the stream
//	 3 Resize         u64 offset, u16 cols, u16 rows, u32 epoch
//	 4 Scrollback     u32 epoch, u64 start, rows from start on: UTF-8, each exactly
//	                  cols wide and ended by LF
//	 5 Resync         u64 offset, reason in UTF-8
//	 6 Exit           u64 offset, JSON {"code":N | "signal":NAME, "closed":BOOL}
//	 7 Error          JSON {"code","message","data"?}, as in an answer
//
//	from the client   payload
//	16 Input          bytes to type, at most MaxInput
//	17 Viewport       u16 cols, u16 rows (1 .. 65535)
//	18 Ack            u64 offset
//	19 Detach         -
//
// A frame to the client, its first four bytes included, is at most the max_frame of
// the connection's hello; one from it is at most MaxFromClient.
//
// # The stream
//
// The first frame is a Snapshot. At any time, the offset of the next Output is
// where the frame before left the stream: the offset of a Snapshot, or the end of
// an Output. So the bytes of all Outputs behind a Snapshot are those of the
// recording from its offset on, with none missing and none twice (what a failed disk
// does not record comes as well). Where the client
// was too slow, a Resync says up to where it was served, and a Snapshot at a later
// offset follows. At a Resize a Snapshot at the same offset follows: rows may have
// come back from the history, and terminals break lines in ways of their own.
//
// Scrollback comes only if the client asked for history, between the other frames:
// the newest rows above the first Snapshot's screen, then older ones. The last one has
// no rows, and its start is that of the oldest row sent; a change of the epoch ends
// it early.
//
// Exit says how the program ended, where the end is known. "closed" false means
// that others hold its terminal, whose output may still follow, up to another Exit.
// Behind an Exit with "closed" true the daemon closes the connection.
//
// # Flow
//
// A client that sends Ack is sent at most Window bytes of the stream behind the
// offset that it acknowledged last; a whole chunk may exceed it. One that never
// does is taken to have processed what it has read. What is not sent yet waits, at
// most recorder.MaxBacklog bytes; then it is thrown away, and a Resync follows
// when the client reads again. Nobody else waits for a slow client.
//
// Input that finds no room, because the program does not read, is refused whole by an
// Error limit.input; the connection goes on, as it does behind every Error about what
// the client asked for. A frame that cannot be read is answered by an Error
// protocol.*, behind which the daemon closes the connection. A client that closes its
// half of the connection has left, as with Detach.
//
// # Limits
//
// The package knows neither panes nor rights. It holds one frame at a time; an Emulator
// holds a screen.
package attach
