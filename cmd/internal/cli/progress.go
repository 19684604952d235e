package cli

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/sys/unix"
)

// progress is a bar on stderr of how much of something is done. It is drawn only
// while stderr is a terminal that nothing else is written to.
type progress struct {
	what  string
	shown bool
	bar   *progressbar.ProgressBar // nil until there is something to show
}

// newProgress is the bar of what is written to out.
func (a *app) newProgress(what string, out *os.File) *progress {
	return &progress{what: what, shown: !a.json && isTerminal(os.Stderr) && !isTerminal(out)}
}

// show says that so many bytes are done of all of them.
func (p *progress) show(done, all uint64) {
	if !p.shown || all == 0 {
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(int64(all),
			progressbar.OptionSetWriter(os.Stderr),
			progressbar.OptionSetDescription(p.what),
			progressbar.OptionShowBytes(true),
			progressbar.OptionUseIECUnits(true),
			progressbar.OptionThrottle(50*time.Millisecond),
			progressbar.OptionUseANSICodes(true),
		)
	}
	_ = p.bar.Set64(int64(min(done, all))) // that stderr is gone is no failure of the export
}

// clear takes the bar away.
func (p *progress) clear() {
	if p.bar != nil {
		_ = p.bar.Clear()
		p.bar = nil
	}
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}
