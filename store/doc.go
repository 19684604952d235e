// Package store keeps what was recorded: per pane an append-only log of opaque
// frames (a kind, a time, bytes) at stream offsets, and opaque checkpoint
// blobs at positions of the log, in one Pebble database.
//
// # What it owns
//
// A directory: the file STORE, which says whose it is, a database in db/ for the
// logs, a journal for the daemon's records and the list of logs, and the file
// reserve (Log.Reserve). One process has it open at a time. Files are made with
// mode 0600, directories with 0700.
//
// # How it is laid out
//
// A log is a row of spans. A span begins with a full checkpoint and holds the
// segments of frames and the further checkpoints up to the next full one; its
// keys are contiguous and nothing in it refers to another span, so that the
// oldest span can be taken away by one Excise and the rest still begins at a
// checkpoint. A segment is about 256 KiB of frames, compressed, with a header
// that describes it and checksums over all of it. What a quiet pane prints is
// first written as tails, small records that are not compressed, and merged
// into a segment in one atomic batch once it is worth it. Keys are drawn in
// keys.go, records in segment.go and frame.go, the header in meta.go, the
// journal in journal.go, reserved offsets in reserve.go; docs/format.md has all
// of them.
//
// Records and logs are apart because Pebble puts neighbouring keys into one
// block, and a damaged block costs all that is in it. The journal is there
// twice, in two files; it also says from where to where each log reached.
//
// Append copies into memory and returns. One goroutine, the committer, takes
// what all logs have, encodes it in a pool of encoders shared by all panes and
// commits it as one synced batch; then Durable moves on. With Options.SyncEvery
// the batch has left the process then, and Synced follows when the WAL is synced
// (deferral.go). Readers see a frame from the moment Append returned. The ends of a
// log are derived from its keys and its last record, so that after a crash it is an
// exact prefix of what was appended, at least up to Durable. What the journal says of
// its end counts only if it is farther: then damage has taken what was there.
//
// # What it refuses
//
// A directory that is not ours (ErrNotStore), a store of a newer version
// (ErrNewerVersion), one that is open elsewhere (ErrLocked). Damage is a
// *DamagedError with the pane and the offset, and costs what is damaged only:
// of the whole store only that of STORE, of Pebble's MANIFEST or WAL, of both files of
// the journal from end to end, or a table that is gone or cut short. A damaged table is mended by the next Open
// (mend.go). A disk that fails ends the store (ErrFailed), not the process: what was
// durable stays, reading goes on, another process recovers it.
//
// # How it forgets
//
// Once a second the retainer takes the oldest spans of each log that keeps more
// than it must (SetRetain), every ten seconds those in which everything is older
// than Options.KeepFor, by the wall times of their frames, and while the store is larger than Options.DiskCap
// those of logs nobody appends to, then of the largest. Oldest moves on before
// the keys go, so a reader that finds nothing looks at Oldest again and reports
// ErrEvicted, never a hole.
//
// # When the disk is full
//
// Writes wait and are tried again every 50 ms; Durable stands still, appending
// goes on until Room is used up, reading goes on. Reserve, which writes over
// what is there, notes durably how far offsets have run ahead. A ballast of 8
// MiB is given to flushes and manifests; to the journal and the WAL only while logs are
// removed or evicted (Relieve), when the committer takes nothing new; to compactions
// never: these fail, and Pebble begins them again. It is taken back when there is space for it and half as much again; where there
// never was, the store does without.
// Stats.FullSince says since when. Any other failure to change the disk, a failed
// sync first of all, fails the store: it writes nothing any more but what Reserve
// does, and goroutines that Pebble had in the middle of a write stay parked until the
// process ends.
//
// # Limits
//
//   - A frame holds at most 16 MiB, a checkpoint 256 MiB.
//   - Of one log at most 4 MiB (Options.InFlight) plus 1 MiB (MaxBatch) are
//     appended and not durable, if callers obey Room; an unclean stop loses at
//     most that (Store.LossBound), and a power cut with SyncEvery 8 MiB more. A
//     disk that fails may lose as much as a power cut. There is no bound over all logs: a thousand
//     panes that flood a disk that stands still hold 5 GiB.
//   - Commits are 5 ms apart unless a pane floods, so Durable trails by 5 ms
//     and one sync of the disk; Synced by SyncEvery and one sync.
//   - A quiet pane keeps up to 64 KiB uncompressed on disk, in up to 256 tails,
//     until more comes or its span ends.
//   - The disk cap may be exceeded by what one second adds, four memtables of 4
//     MiB (the WAL files that Pebble uses again), 32 MiB of evicted spans in
//     tables that other spans live in, and the last span of each log.
//   - The time index never runs backwards: after the wall clock was set back,
//     OffsetAt knows no difference between the moments until it has caught up.
//   - Damage of a block of the database costs the records in it (a block is 32
//     KiB, or one record that is larger), of a table's index or footer nothing; of
//     both, what lies behind it in the table (4 MiB as a rule). That is so once the
//     table is mended, by the Open after the one that meets the damage (Stats.Damaged).
//     Until then it may hide as much as the table spans, of all logs, and costs about
//     a hundred seeks, some ms, for each reader that comes by. It stops nobody who
//     writes, but what cannot be compacted with it piles up, and Pebble tries again
//     and again: up to a third of a core.
//   - Mending a table takes three times its size in memory, and once on disk. Where
//     there is no space, it stays for the next Open.
//   - A lost checkpoint inside a span costs time only, and once its table is mended
//     nothing tells of it. If the last record of a log is damaged, and its table not
//     mended, what is appended comes 21 MiB behind it (29 if SyncEvery was ever set).
//     Where a crash came upon an eviction, and a table was damaged too, what was evicted
//     may be reported as damage.
//   - The daemon's records are kept in memory. A record is at most 16 MiB, its
//     key 64 KiB. Put and Create cost two syncs, shared by those that wait.
//   - Twelve files are open all the time, ten more for a moment, and as many tables
//     as Options.Tables says. When no more can be opened, writes wait, and a read
//     fails with EMFILE after two seconds; neither is damage.
//   - A log takes 128 bytes in reserve. On a file system that copies on write
//     Reserve may fail when that is full.
//   - Opening a store costs its records and two seeks, some 50 µs, for each log;
//     opening a log its last record and its tails, whatever its length.
//   - A store wants 4 MiB of disk at least; on one with less than 64 MiB left
//     memtables are a sixteenth of that, 256 KiB at least.
//   - Memory: two memtables of 4 MiB, 8 MiB of block cache, an encoder of about
//     1 MiB per processor, and what is in flight.
package store
