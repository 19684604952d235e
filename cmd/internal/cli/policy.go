package cli

import (
	"fmt"
	"strings"
	"time"
)

const (
	leastSync = 10 * time.Millisecond
	mostSync  = time.Minute
	// syncEvery begins the value of --sync that puts syncs off.
	syncEvery = "interval="
)

// policy is a flag that says how often what is recorded is synced to the disk:
// 0 for each commit, as always, or an interval.
type policy time.Duration

func (p *policy) Type() string { return "always|interval=D" }

func (p *policy) String() string {
	if *p == 0 {
		return "always"
	}
	return syncEvery + time.Duration(*p).String()
}

func (p *policy) Set(text string) error {
	if text == "always" {
		*p = 0
		return nil
	}
	interval, ok := strings.CutPrefix(text, syncEvery)
	d, err := time.ParseDuration(interval)
	if !ok || err != nil || d < leastSync || d > mostSync {
		return fmt.Errorf("%q is neither always nor an interval of 10ms to 1m, such as interval=1s", text)
	}
	*p = policy(d)
	return nil
}
