package recorder

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

// TestProcesses: who asks while a pass is under way gets the next one, which has
// what was there when they asked.
func TestProcesses(t *testing.T) {
	table := processTable{turn: make(chan struct{}, 1)}
	table.turn <- struct{}{} // a pass is under way
	lists := make(chan []process)
	ask := func() {
		found, err := table.list()
		if err != nil {
			t.Error(err)
		}
		lists <- found
	}
	go ask()
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	for range 20 {
		go ask()
	}
	<-table.turn // it has ended
	for i := range 21 {
		found := <-lists
		for _, pid := range []int{os.Getpid(), child.Process.Pid} {
			if !slices.ContainsFunc(found, func(p process) bool { return p.pid == pid }) {
				t.Errorf("list %d of %d processes lacks %d", i, len(found), pid)
			}
		}
	}
}
