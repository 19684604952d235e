package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"looptape/cmd/internal/cli"
	"looptape/cmd/internal/wire"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"looptape": func() { os.Exit(cli.Main()) }, "stubborn": stubborn})
}

// patience bounds every wait of the tests; it is no measure of anything.
const patience = 60 * time.Second

// TestScript runs the scripts, each with a state directory of its own and a
// real daemon.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("LOOPTAPE_DIR", filepath.Join(env.WorkDir, "state"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("SHELL", "/bin/sh")
			env.Setenv("LC_ALL", "C.UTF-8")
			env.Defer(func() { endDaemon(filepath.Join(env.WorkDir, "state"), syscall.SIGTERM) })
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"startdaemon": startDaemonCmd,
			"stopdaemon":  func(ts *testscript.TestScript, _ bool, _ []string) { stopDaemonCmd(ts, syscall.SIGTERM) },
			"killdaemon":  func(ts *testscript.TestScript, _ bool, _ []string) { stopDaemonCmd(ts, syscall.SIGKILL) },
			"waitoffset":  waitOffsetCmd,
			"waitdurable": waitDurableCmd,
			"waitstate":   waitStateCmd,
			"waitscreen":  waitScreenCmd,
			"waitsize":    waitSizeCmd,
			"wire":        wireCmd,
		},
	})
}

// startDaemonCmd starts a daemon in the background and waits until it listens.
func startDaemonCmd(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command("looptape", append([]string{"serve"}, args...)...)
	path, err := lookPath(ts.Getenv("PATH"), "looptape")
	ts.Check(err)
	cmd.Path, cmd.Err = path, nil
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "SHELL", "LOOPTAPE_DIR", "LC_ALL", "TMPDIR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	log, err := os.OpenFile(ts.MkAbs("daemon.out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	ts.Check(cmd.Start())
	overdue := oversee(cmd.Process)
	go func() { cmd.Wait(); overdue.Stop() }()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if c, err := dial(ts.Getenv("LOOPTAPE_DIR")); err == nil {
			c.Close()
			return
		} else if time.Now().After(deadline) {
			out, _ := os.ReadFile(ts.MkAbs("daemon.out"))
			ts.Fatalf("the daemon does not listen: %v\n%s", err, out)
		}
	}
}

func lookPath(path, name string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return filepath.Join(dir, name), nil
		}
	}
	return "", fmt.Errorf("no %s in %s", name, path)
}

func stopDaemonCmd(ts *testscript.TestScript, sig syscall.Signal) {
	ts.Check(endDaemon(ts.Getenv("LOOPTAPE_DIR"), sig))
}

// dial connects to the daemon of a state directory as the owner.
func dial(dir string) (*wire.Client, error) { return dialFrame(dir, wire.DefaultMaxFrame) }

// dialFrame is dial with a largest frame.
func dialFrame(dir string, maxFrame int) (*wire.Client, error) {
	h := wire.Hello{Client: "test", MaxFrame: &maxFrame}
	if token, err := os.ReadFile(filepath.Join(dir, "owner.token")); err == nil {
		text := strings.TrimSpace(string(token))
		h.Token = &text
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return wire.Dial(ctx, filepath.Join(dir, "looptape.sock"), h)
}

// endDaemon signals the daemon of a state directory, if one runs, and waits
// until it is gone.
func endDaemon(dir string, sig syscall.Signal) error {
	c, err := dial(dir)
	if err != nil {
		return nil
	}
	raw, err := c.Call(context.Background(), "doctor", map[string]any{})
	c.Close()
	if err != nil {
		return err
	}
	var doctor struct{ PID int }
	if err := json.Unmarshal(raw, &doctor); err != nil {
		return err
	}
	if err := syscall.Kill(doctor.PID, sig); err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if c, err := dial(dir); err == nil { // its threads do not all end at once
			c.Close()
			continue
		}
		// A zombie of ours is as gone as any.
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", doctor.PID)); err != nil || strings.Contains(string(stat), ") Z ") {
			return nil
		}
	}
	return fmt.Errorf("the daemon %d does not end", doctor.PID)
}

// paneInfo is what the tests read of pane.get.
type paneInfo struct {
	State   string
	Offset  uint64
	Durable uint64
	Oldest  uint64
	Epoch   uint32
	Screen  string
	Cols    int
	Rows    int
}

func getPane(dir, pane string) (p paneInfo, err error) {
	c, err := dial(dir)
	if err != nil {
		return p, err
	}
	defer c.Close()
	raw, err := c.Call(context.Background(), "pane.get", map[string]any{"pane": pane})
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	return p, err
}

// waitOffsetCmd waits until a pane has written so many bytes.
func waitOffsetCmd(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.ParseUint(args[1], 10, 64)
	ts.Check(err)
	waitFor(ts, args[0], func(p paneInfo) bool { return p.Offset >= want })
}

// waitDurableCmd waits until so many bytes of a pane are durable.
func waitDurableCmd(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.ParseUint(args[1], 10, 64)
	ts.Check(err)
	waitFor(ts, args[0], func(p paneInfo) bool { return p.Durable >= want })
}

// waitStateCmd waits until a pane is in a state.
func waitStateCmd(ts *testscript.TestScript, _ bool, args []string) {
	waitFor(ts, args[0], func(p paneInfo) bool { return p.State == args[1] })
}

// waitSizeCmd waits until a pane has so many columns and rows.
func waitSizeCmd(ts *testscript.TestScript, _ bool, args []string) {
	waitFor(ts, args[0], func(p paneInfo) bool { return fmt.Sprint(p.Cols, p.Rows) == args[1]+" "+args[2] })
}

// waitScreenCmd waits until the screen of a pane matches a regular expression, in which
// ^ and $ are the ends of a line.
func waitScreenCmd(ts *testscript.TestScript, _ bool, args []string) {
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	var screen struct{ Text string }
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if c, err := dial(ts.Getenv("LOOPTAPE_DIR")); err == nil {
			raw, err := c.Call(context.Background(), "pane.capture", map[string]any{"pane": args[0]})
			c.Close()
			if err == nil {
				err = json.Unmarshal(raw, &screen)
			}
			ts.Check(err)
			if re.MatchString(screen.Text) {
				return
			}
		}
	}
	ts.Fatalf("the screen of %s did not match %q:\n%s", args[0], args[1], screen.Text)
}

func waitFor(ts *testscript.TestScript, pane string, ok func(paneInfo) bool) {
	var last paneInfo
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if last, err = getPane(ts.Getenv("LOOPTAPE_DIR"), pane); err == nil && ok(last) {
			return
		}
	}
	ts.Fatalf("%s did not get there: %+v, %v", pane, last, err)
}

// wireCmd sends its arguments as lines and prints as many lines of answer, or
// those until the daemon hangs up.
func wireCmd(ts *testscript.TestScript, _ bool, args []string) {
	nc, err := net.Dial("unix", filepath.Join(ts.Getenv("LOOPTAPE_DIR"), "looptape.sock"))
	ts.Check(err)
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	in := bufio.NewReader(nc)
	var out strings.Builder
	for _, line := range args {
		fmt.Fprintf(nc, "%s\n", line) // an error shows in the answer
		answer, err := in.ReadString('\n')
		out.WriteString(answer)
		if err != nil {
			out.WriteString("(closed)\n")
			break
		}
	}
	fmt.Fprint(ts.Stdout(), out.String())
}
