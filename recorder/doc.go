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
// writes a checkpoint, marks the place and hangs up. What SIGHUP and then SIGKILL do
// not end, as a program of another user, is said ([KillError]) and goes on being
// recorded; from a Stop on it goes on without.
//
// # Limits
//
// Hydration takes at most about 100 ms wherever checkpoints are as the schedule puts
// them, whatever was printed, with these exceptions, measured where 16 MiB of log lines
// are fed in 31 ms: a colour of its own in each cell of a screen of 65,535x4 (0.15 to
// 0.2 s) or 2,048x2,048 (2 s); full rows of 65,535 columns (up to 0.15 s); 1,000,000
// rows of scrollback (0.4 to 0.6 s of log lines). A sequence of a program that touches
// 2^22 cells takes some ms, and a frame has 64 bytes at least: of the largest screens an
// offset within such a frame takes as long as its sequences. Checkpoints take at most
// 15 % of the log of lines, full-screen programs and slow output; of hostile output they
// may take as much as the log.
//
// A start on a file system that does not answer can be given up ([LateError]), not
// ended: it keeps a thread until there is an answer. Where the request is with a FUSE
// server that has read it, the kernel keeps this process too, as one that has ended and
// closed what it had. A file system that dies between the look at a program and its exec,
// or its chdir where threads cannot have directories of their own, holds up this process.
//
// # Refusals
//
// The package starts nothing but the program it was given, interprets no
// output (the Terminal does), serves no client and knows no ids, rights or
// verbs. It never ends a program because the log fails. A panic in one loop
// ends the recording of that pane, is reported by [Pane.Fault], and touches no
// other.
package recorder
