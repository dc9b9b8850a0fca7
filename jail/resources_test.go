package jail

import (
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Resources counts the objects of runs, each once, and nothing of an idle jail.
func TestResources(t *testing.T) {
	j := newJail(t, func(s *Spec) { s.Loopback = true })
	idle, err := j.Resources(t.Context())
	if err != nil || idle.Processes+idle.Descriptors+idle.Sockets+idle.Listeners+idle.Terminals != 0 || idle.Memory != 0 {
		t.Errorf("an idle jail: %v %+v", err, idle)
	}
	p, read := start(t, j, "echo 0123456789 > /work/file; mkdir /work/dir; exec 5>>/work/file 6>&5; busybox sleep 100 & wait")
	defer func() { p.Kill(); read(); <-p.Done() }()
	var r Resources
	waitFor(t, "the shell's child", func() bool {
		r, err = j.Resources(t.Context())
		return err != nil || r.Processes == 2 && r.Descriptors == 10
	})
	if err != nil || r.Sockets != 0 || r.Pipes != 2 || r.Terminals != 0 || r.Listeners != 0 || r.Connections != 0 || r.Truncated {
		t.Errorf("%v %+v", err, r)
	}
	if r.Memory <= 0 || r.Files != idle.Files+2 || r.Disk-idle.Disk <= 0 || r.Disk-idle.Disk > 1<<16 {
		t.Errorf("%+v, idle %+v", r, idle)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.Resources(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled count: %v", err)
	}
}

// The count of descriptors is bounded.
func TestResourcesAreBounded(t *testing.T) {
	c := resourceCount{seen: map[string]struct{}{}}
	c.Descriptors = maxDescriptors - 3
	j := newJail(t)
	c.firstID, c.ids = j.HostIDs()
	p, read := start(t, j, "exec busybox sleep 100")
	defer func() { p.Kill(); read(); <-p.Done() }()
	c.addProcess(p.PID())
	if c.Processes != 1 || c.Descriptors != maxDescriptors || c.Truncated {
		t.Errorf("%+v", c.Resources)
	}
	c.addProcess(p.PID())
	if c.Processes != 2 || c.Descriptors != maxDescriptors || !c.Truncated {
		t.Errorf("%+v", c.Resources)
	}
	c.addProcess(unix.Getpid()) // the host's
	if c.Processes != 2 {
		t.Errorf("a process of the host counts: %+v", c.Resources)
	}
}

// A file's name does not make it look like a socket or pipe.
func TestResourcesOfNamedFiles(t *testing.T) {
	j := newJail(t)
	p, read := start(t, j, "cd /work; exec 5>'socket:[1]' 6>'pipe:[1]' 7>"+strings.Repeat("x", 100)+"; exec busybox sleep 100")
	defer func() { p.Kill(); read(); <-p.Done() }()
	var r Resources
	waitFor(t, "its files", func() bool {
		var err error
		if r, err = j.Resources(t.Context()); err != nil {
			t.Fatal(err)
		}
		return r.Descriptors >= 6 && r.Files >= 3
	})
	if r.Sockets != 0 || r.Pipes != 2 {
		t.Errorf("%+v", r)
	}
}
