package store

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// compressor is what an encoder needs of zstd; nil compresses nothing.
type compressor interface {
	EncodeAll(src, dst []byte) []byte
}

// encoders is the pool that all panes share: GOMAXPROCS workers, each taking
// one block at a time. A worker per pane would be idle memory a thousand
// times over (an encoder holds about 1 MB).
type encoders struct {
	z    compressor
	jobs chan encodeJob // closed by stop
	wg   sync.WaitGroup // the workers
}

type encodeJob struct {
	b    *block
	done *sync.WaitGroup
}

// newEncoders starts the workers. level is a zstd level of 1 (fastest) to 4,
// 0 for the fastest, below 0 to store everything as it is.
func newEncoders(level int) (*encoders, error) {
	e := &encoders{jobs: make(chan encodeJob)}
	n := runtime.GOMAXPROCS(0)
	if level >= 0 {
		z, err := zstd.NewWriter(nil,
			zstd.WithEncoderLevel(zstd.EncoderLevel(max(level, 1))),
			zstd.WithEncoderConcurrency(n),
			zstd.WithEncoderCRC(false), // the record has its own
			zstd.WithWindowSize(1<<20),
			zstd.WithLowerEncoderMem(true))
		if err != nil {
			return nil, fmt.Errorf("store: zstd level %d: %w", level, err)
		}
		e.z = z
	}
	for range n {
		e.wg.Add(1)
		go e.work()
	}
	return e, nil
}

// work encodes blocks until jobs is closed; stop waits for it.
func (e *encoders) work() {
	defer e.wg.Done()
	for j := range e.jobs {
		j.b.encode(e.z)
		j.done.Done()
	}
}

// encode encodes all blocks and returns when they are done.
func (e *encoders) encode(blocks []*block) {
	var done sync.WaitGroup
	for _, b := range blocks {
		if b.typ == recTail || b.bytes() < 4<<10 {
			b.encode(e.z) // cheaper than to hand it over
			continue
		}
		done.Add(1)
		e.jobs <- encodeJob{b, &done}
	}
	done.Wait()
}

// stop ends the workers and waits for them.
func (e *encoders) stop() {
	close(e.jobs)
	e.wg.Wait()
}

// decoder is shared by all readers; it starts no goroutine.
var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(0),
		zstd.WithDecodeAllCapLimit(true), // never more than the header says
		zstd.WithDecoderMaxMemory(maxRaw))
	if err != nil {
		panic(err) // the options are constants
	}
	return d
})

// decompress decodes p, which must come to at most n bytes, into dst's memory
// if that is large enough.
func decompress(dst, p []byte, n int) ([]byte, error) {
	if cap(dst) < n {
		dst = make([]byte, 0, n)
	}
	return decoder().DecodeAll(p, dst[:0:n])
}
