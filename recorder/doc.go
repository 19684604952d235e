// Package recorder runs a program under a PTY and records it: one live pane.
//
// # Who owns what
//
// Each Pane has one loop, the goroutine that owns its Terminal, its end of the
// log and its state. Everything else hands the loop something or takes
// something from it:
//
//	waiter   waits until the PTY can be read, and says so; the loop itself reads
//	writer   writes input and the Terminal's replies to the PTY, from two queues
//	         of 64 KiB each, so that the loop never waits for a program that
//	         does not read
//	reaper   waits for the child and hands over its status
//	callers  run a function on the loop, between two batches ([Pane.View])
//	streams  take what happens from a queue of at most 1 MiB each ([Pane.Subscribe]);
//	         a batch is copied once for all of them, and not at all without any
//
// What happens besides, such as titles, bells and the exit, is told on the loop
// ([Config.Observe]), and a flood of it at a limited rate, with its number.
//
// A batch is what can be read without waiting, at most 256 KiB, in one frame or,
// where its bytes may take long, in several. The loop appends a frame to the log,
// then feeds it to the Terminal: an offset that anybody sees is in the log. While the log has no room for more, the loop stops
// reading, the kernel's buffer fills, and the program waits; nothing is dropped.
//
// # Ends
//
// When the child has been reaped, what can be read without waiting is its
// output; then an Exit mark follows. A grandchild may hold the PTY open: its
// bytes are recorded until the first EIO, which closes the pane and ends its loop;
// from then on it is read from its log. Stop ends the recording earlier: it
// writes a checkpoint, marks the place and hangs up.
//
// # Refusals
//
// The package starts nothing but the program it was given, interprets no
// output (the Terminal does), serves no client and knows no ids, rights or
// verbs. It never ends a program because the log fails. A panic in one loop
// ends the recording of that pane, is reported by [Pane.Fault], and touches no
// other.
package recorder
