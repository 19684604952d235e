package main_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"looptape/cmd/internal/attach"
)

// BenchmarkAttached is what attached clients cost a pane that writes as fast as it can:
// "kept" is its throughput with them as a part of that without, of windows that
// alternate. Those who read keep no screen, as they would on another core.
func BenchmarkAttached(b *testing.B) {
	for _, n := range []struct{ reading, idle int }{{1, 0}, {4, 0}, {0, 100}} {
		b.Run(fmt.Sprintf("reading=%d,idle=%d", n.reading, n.idle), func(b *testing.B) {
			s := newServer(b)
			c := s.client()
			pane := s.run(c, 80, 24, "yes", strings.Repeat("x", 78))
			const window = time.Second
			s.streamed(c, pane, window) // the log and its retention are under way
			b.ResetTimer()
			var with, without uint64
			for range max(b.N, 5) {
				without += s.streamed(c, pane, window)
				var clients []*attached
				for range n.reading {
					a := s.attachIdle(attach.Params{Pane: pane})
					go a.discard()
					clients = append(clients, a)
				}
				for range n.idle {
					clients = append(clients, s.attachIdle(attach.Params{Pane: pane}))
				}
				with += s.streamed(c, pane, window)
				for _, a := range clients {
					a.Close()
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(with)/float64(without), "kept")
			b.ReportMetric(float64(without)/float64(max(b.N, 5))/1e6, "MB/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// discard reads to the end.
func (a *attached) discard() {
	for {
		if _, err := a.Next(); err != nil {
			return
		}
	}
}
