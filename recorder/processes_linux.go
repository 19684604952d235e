package recorder

import (
	"bytes"
	"os"
	"strconv"
	"sync"
)

// process is what /proc says of one that has not ended.
type process struct {
	pid      int
	session  string
	terminal string // its device number
}

// processTable reads /proc for all who ask at once: one pass with a thousand
// processes takes some ten milliseconds, and a session that is killed may have five
// hundred panes that look for what is left of them.
type processTable struct {
	turn chan struct{} // holds one: whoever reads

	mu   sync.Mutex
	next *pass // has not begun to read
}

// pass is one reading of /proc.
type pass struct {
	done  chan struct{} // closed once found is set
	found []process
	err   error
}

var processes = processTable{turn: make(chan struct{}, 1)}

// list returns the processes as they were at a moment after the call.
func (t *processTable) list() ([]process, error) {
	t.mu.Lock()
	p := t.next
	first := p == nil
	if first {
		p = &pass{done: make(chan struct{})}
		t.next = p
	}
	t.mu.Unlock()
	if first {
		t.turn <- struct{}{}
		t.mu.Lock()
		t.next = nil
		t.mu.Unlock()
		p.found, p.err = readProcesses()
		<-t.turn
		close(p.done)
	}
	<-p.done
	return p.found, p.err
}

func readProcesses() (found []process, err error) {
	names, err := os.ReadDir("/proc")
	for _, name := range names {
		pid, err := strconv.Atoi(name.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name.Name() + "/stat")
		if err != nil {
			continue
		}
		// pid (command) state ppid pgrp session tty_nr ...; the command may hold
		// anything. A zombie has ended.
		f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(f) > 4 && string(f[0]) != "Z" {
			found = append(found, process{pid, string(f[3]), string(f[4])})
		}
	}
	return found, err
}
