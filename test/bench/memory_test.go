package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
)

func TestMemoryOfChild(t *testing.T) {
	cat := exec.Command("cat")
	in, err1 := cat.StdinPipe()
	out, err2 := cat.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	before := descendants()
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cat.Wait(); err != nil {
			t.Error(err)
		}
	})
	if _, err := io.WriteString(in, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil { // its memory grows until it reads
		t.Fatal(err)
	}
	pids := descendants()
	if !slices.Contains(pids, cat.Process.Pid) || slices.Contains(pids, os.Getpid()) {
		t.Errorf("the descendants of %d are %v, want %d among them", os.Getpid(), pids, cat.Process.Pid)
	}
	rss, err1 := newMemory(before, "Rss")
	dirty, err2 := newMemory(before, "Private_Dirty")
	both, err3 := newMemory(before, "Private_Dirty", "Rss")
	if err := errors.Join(err1, err2, err3); err != nil || dirty <= 0 || rss < dirty || both <= rss {
		t.Errorf("a child has %v MB, %v of its own, and both are %v, %v", rss, dirty, both, err)
	}
	if _, err := newMemory(before, "Nonsense"); err == nil {
		t.Error("a missing field has a size")
	}
	if _, err := newMemory(descendants(), "Rss"); err == nil {
		t.Error("no new process has a size")
	}
}
