package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"looptape/cmd/internal/wire"
)

// BenchmarkReaders is seed 000's cases 5 and 6 under load: 100 connections, each
// of which calls ten times a second, on a pane that runs yes, ten seconds in all.
// Half of them ask for the newest 50 rows, half page through history from its oldest
// row on. "kept" is the pane's throughput with the readers as a part of that without,
// of windows that alternate; at least 0.75 is wanted.
//
// Short lines keep the kernel's terminal busy, long ones the daemon.
func BenchmarkReaders(b *testing.B) {
	b.Run("short", func(b *testing.B) { benchmarkReaders(b, "yes") })
	b.Run("long", func(b *testing.B) { benchmarkReaders(b, "yes", strings.Repeat("x", 78)) })
}

func benchmarkReaders(b *testing.B, argv ...string) {
	s := newServer(b)
	c := s.client()
	pane := s.run(c, 80, 24, argv...)
	crowd := newCrowd(s, pane, 100)
	defer crowd.leave()
	const window = time.Second
	s.streamed(c, pane, window) // the log and its retention are under way
	b.ResetTimer()
	var with, without uint64
	for range max(b.N, 10) {
		without += s.streamed(c, pane, window)
		crowd.reading.Store(true)
		with += s.streamed(c, pane, window)
		crowd.reading.Store(false)
	}
	b.StopTimer()
	seconds := float64(max(b.N, 10)) * window.Seconds()
	b.ReportMetric(float64(with)/float64(without), "kept")
	b.ReportMetric(float64(without)/seconds/1e6, "MB/s")
	b.ReportMetric(float64(crowd.calls.Load())/seconds, "calls/s")
	b.ReportMetric(float64(crowd.outrun.Load())/seconds, "outrun/s")
	b.ReportMetric(0, "ns/op")
}

// streamed is how many bytes a pane writes in about d.
func (s *server) streamed(c *wire.Client, pane string, d time.Duration) uint64 {
	s.t.Helper()
	type at struct{ Offset uint64 }
	from := call[at](s, c, "pane.get", obj{"pane": pane}).Offset
	began := time.Now()
	time.Sleep(d)
	to := call[at](s, c, "pane.get", obj{"pane": pane}).Offset
	return uint64(float64(to-from) * d.Seconds() / time.Since(began).Seconds())
}

// crowd are connections that read a pane while reading is set.
type crowd struct {
	reading atomic.Bool
	calls   atomic.Int64
	outrun  atomic.Int64 // of them
	stop    context.CancelFunc
	gone    sync.WaitGroup
}

func newCrowd(s *server, pane string, n int) *crowd {
	ctx, stop := context.WithCancel(s.ctx)
	w := &crowd{stop: stop}
	for i := range n {
		c := s.client()
		w.gone.Go(func() {
			w.read(ctx, s.t, c, pane, time.Duration(i)*100*time.Millisecond/time.Duration(n), i%2 == 1)
		})
	}
	return w
}

// read calls ten times a second. It ends with ctx; leave waits for it.
func (w *crowd) read(ctx context.Context, t testing.TB, c *wire.Client, pane string, phase time.Duration, pages bool) {
	time.Sleep(phase)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	newest, oldest := obj{"pane": pane, "tail": 50}, obj{"pane": pane, "max_rows": 50}
	params := newest
	if pages {
		params = oldest
	}
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !w.reading.Load() {
			continue
		}
		raw, err := c.Call(ctx, "pane.capture_rows", params)
		var page rowsPage
		if err == nil {
			err = json.Unmarshal(raw, &page)
		}
		var e *wire.Error
		switch {
		case ctx.Err() != nil:
			return
		case errors.As(err, &e) && e.Code == "not_found.rows": // outrun
			w.outrun.Add(1)
			params = oldest
		case err != nil || len(page.Lines) != 50:
			t.Errorf("%.300s: %v", raw, err)
			return
		case pages:
			params = obj{"pane": pane, "max_rows": 50, "epoch": page.Epoch, "start": *page.Next, "end": page.End}
		}
		w.calls.Add(1)
	}
}

func (w *crowd) leave() {
	w.stop()
	w.gone.Wait()
}
