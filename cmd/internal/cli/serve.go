package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"looptape/cmd/internal/daemon"
	"looptape/cmd/internal/wire"
)

func (a *app) serveCommand() *cobra.Command {
	disk := size(4 << 30)
	var sync policy
	var keep age
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon in the foreground until SIGTERM or SIGINT",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := a.dir()
			if err != nil {
				return err
			}
			keepDescriptors()
			ends := heeded(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
			// Caught rather than ignored, so that programs in panes start with
			// their defaults: nobody reads the channel.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE, syscall.SIGINT, syscall.SIGHUP)
			ctx, stop := signal.NotifyContext(cmd.Context(), ends...)
			defer stop()
			log := newLogQueue(os.Stderr)
			defer log.close()
			err = daemon.Serve(ctx, daemon.Config{
				Dir: dir, Socket: daemon.ResolveSocket(a.socketFlag, dir),
				DiskCap: uint64(disk), SyncEvery: time.Duration(sync), KeepFor: time.Duration(keep),
				Logger: slog.New(slog.NewTextHandler(log, nil)),
			}, func() {})
			if err != nil {
				return &wire.Error{Code: "unavailable.daemon", Message: err.Error()}
			}
			return nil
		},
	}
	cmd.Flags().Var(&disk, "disk", "most that recordings may take on disk (at least 32M); beyond it the oldest go")
	cmd.Flags().Var(&keep, "keep-for", "how old recordings may become, such as 36h or 30d; then they go (default any age)")
	cmd.Flags().Var(&sync, "sync", "when recordings are synced to the disk: always, or at the latest every D (10ms to 1m), which kill -9 survives, but a power cut costs what came meanwhile")
	return cmd
}

// heeded are the signals without those that this process was started to ignore: SIGHUP
// by nohup, SIGINT in the background of a script.
func heeded(signals ...os.Signal) []os.Signal { return slices.DeleteFunc(signals, signal.Ignored) }

// size is a flag that holds a number of bytes, as 512M or 4G.
type size uint64

const leastDisk = 32 << 20

func (s *size) Type() string { return "size" }

func (s *size) String() string {
	for i, unit := range []string{"G", "M", "K"} {
		if shift := 30 - 10*i; *s>>shift<<shift == *s && *s != 0 {
			return fmt.Sprintf("%d%s", *s>>shift, unit)
		}
	}
	return strconv.FormatUint(uint64(*s), 10)
}

func (s *size) Set(text string) error {
	digits := strings.TrimRight(text, "KMG")
	shift := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30}
	by, known := shift[text[len(digits):]]
	n, err := strconv.ParseUint(digits, 10, 33)
	if err != nil || !known || n<<by < leastDisk {
		return fmt.Errorf("%q is no size of at least 32M, such as 512M or 4G", text)
	}
	*s = size(n << by)
	return nil
}

const (
	// startPatience is how long a daemon may take to listen.
	startPatience = 20 * time.Second
	// rivalPatience is how long one may that somebody else started.
	rivalPatience = 3 * time.Second
)

// connectOrStart connects with a token, as connect does. When no daemon runs, it
// starts one in the background.
func (a *app) connectOrStart(ctx context.Context, token string, maxFrame int) (*wire.Client, error) {
	c, err := a.connect(ctx, token, maxFrame)
	var e *wire.Error
	if err == nil || !errors.As(err, &e) || e.Code != "unavailable.daemon" {
		return c, err
	}
	dir, err := a.dir()
	if err != nil {
		return nil, err
	}
	started, err := startDaemon(dir, daemon.ResolveSocket(a.socketFlag, dir))
	if err != nil {
		return nil, &wire.Error{Code: "unavailable.daemon", Message: "no daemon could be started: " + err.Error()}
	}
	ended := started.ended
	for deadline := time.Now().Add(startPatience); time.Now().Before(deadline); {
		c, err := a.connect(ctx, token, maxFrame)
		if !errors.As(err, &e) || e.Code != "unavailable.daemon" {
			if err == nil {
				started.giveWay(ctx, c)
			}
			return c, err
		}
		select {
		case <-ended:
			// If somebody else started one at the same moment, that one listens soon.
			ended = nil
			deadline = time.Now().Add(rivalPatience)
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	if ended == nil {
		return nil, &wire.Error{Code: "unavailable.daemon", Message: "no daemon could be started: " + lastLine(started.log)}
	}
	return nil, &wire.Error{Code: "unavailable.daemon", Message: fmt.Sprintf("a daemon was started, but it does not listen yet: see %s", started.log)}
}

// started is a daemon that this program has started.
type started struct {
	pid   int
	ended <-chan struct{} // closed when it has ended
	log   string          // path of what it says
}

// giveWay waits until the daemon has ended, unless it is the one that c is connected
// to. Somebody else's was faster then, and s finds the directory taken; were it left
// behind, it could come up late, in the place of one that was stopped meanwhile.
func (s *started) giveWay(ctx context.Context, c *wire.Client) {
	var there struct {
		PID int `json:"pid"`
	}
	raw, err := c.Call(ctx, "doctor", struct{}{})
	if err != nil || json.Unmarshal(raw, &there) != nil || there.PID == s.pid {
		return
	}
	select {
	case <-s.ended:
	case <-ctx.Done():
	case <-time.After(startPatience):
	}
}

// startDaemon starts this program as a daemon: a session of its own, nothing
// inherited, its output in daemon.log.
func startDaemon(dir, socket string) (*started, error) {
	if err := daemon.PrepareDir(dir); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log := filepath.Join(dir, daemon.LogName)
	out, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	keepDescriptors()
	cmd := exec.Command(self, "serve", "--dir", dir, "--socket", socket)
	cmd.Args[0] = os.Args[0]
	cmd.Dir = "/"
	cmd.Env = without(os.Environ(), "LOOPTAPE_TOKEN")
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go reap(cmd, done)
	return &started{pid: cmd.Process.Pid, ended: done, log: log}, nil
}

// reap waits for the daemon to end, which is after this program as a rule;
// nobody waits for it.
func reap(cmd *exec.Cmd, done chan<- struct{}) {
	cmd.Wait()
	close(done)
}

// without is env without the named variables.
func without(env []string, names ...string) []string {
	var kept []string
next:
	for _, kv := range env {
		for _, name := range names {
			if strings.HasPrefix(kv, name+"=") {
				continue next
			}
		}
		kept = append(kept, kv)
	}
	return kept
}

// lastLine is the last line of a file, as it says why a daemon ended.
func lastLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "see " + path
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > 4096 {
		f.Seek(-4096, io.SeekEnd)
	}
	raw, _ := io.ReadAll(f)
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return strings.TrimPrefix(lines[len(lines)-1], "looptape: ")
}
