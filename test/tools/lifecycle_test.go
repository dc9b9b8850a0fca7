package tools

import (
	"fmt"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"gaol/runtime/sandboxtools"
	"gaol/test/harness"
)

// The guest's working directory can be anywhere except in the system's folders.
func TestToolsRoots(t *testing.T) {
	base := t.TempDir()
	s := newTools(t, sandboxtools.Options{ProjectBase: base})
	for _, root := range []string{"workspace", "app", "a/b.c/d_e", "home/node", "home/node/x", "tmp", "tmp/x", "var/lib/x", "opt", "srv", "mnt/data", "home", "var"} {
		for _, project := range []string{"", "p"} {
			a := args{"containerId": "a", "rootPath": root, "projectOutPath": project}
			if _, err := s.try("init", a); err != nil {
				t.Errorf("%v: %v", a, err)
				continue
			}
			s.call("write_file", args{"containerId": "a", "path": "f", "content": root})
			r := s.call("command", args{"containerId": "a", "executable": "cat", "args": []string{"/" + root + "/f"}})
			if r["stdout"] != root {
				t.Errorf("%v: %v", a, r)
			}
			s.call("destroy", args{"containerId": "a"})
		}
	}
}

func TestToolsLimits(t *testing.T) {
	s := newTools(t, sandboxtools.Options{MaxSandboxes: 2, Images: map[string]string{"allowed": ""}})
	s.call("init", args{"containerId": "a"})
	s.refused(sandboxtools.Exists, "init", args{"containerId": "a"})
	made := s.call("init", args{"containerName": "not_a_host"})
	if id := made["containerId"].(string); len(id) < 20 || made["hostName"] != "secure-exec" {
		t.Error(made)
	}
	s.refused(sandboxtools.Limit, "init", args{})
	s.call("destroy", args{"containerId": made["containerId"]})
	s.refused(sandboxtools.NotFound, "init", args{"imageName": "allowed"})
	s.refused(sandboxtools.Permission, "init", args{"imageName": "other"})
	s.refused(sandboxtools.Permission, "init", args{"imageName": "../../../etc"})
	s.refused(sandboxtools.Permission, "init", args{"imageName": harness.DefaultImage(t).ID})
	s.refused(sandboxtools.InvalidArgument, "init", args{"rootPath": "proc/self"})
	s.refused(sandboxtools.InvalidArgument, "init", args{"rootPath": "../x"})
	s.call("init", args{"containerId": "b"}) // the failed attempt does not count
	s.call("destroy", args{"containerId": "b"})
	s.refused(sandboxtools.NotFound, "destroy", args{"containerId": "b"})
	s.call("init", args{"containerId": "b"})

	s.call("write_file", args{"containerId": "b", "path": "f", "content": "x"})
	if r := s.call("destroy", args{"containerId": "b", "removeContainer": false}); r["removed"] != false {
		t.Error(r)
	}
	s.refused(sandboxtools.Closed, "command", args{"containerId": "b", "executable": "pwd"})
	if r := s.call("read_file", args{"containerId": "b", "path": "f"}); r["content"] != "x" {
		t.Error(r)
	}
	s.call("destroy", args{"containerId": "b"})
	s.refused(sandboxtools.NotFound, "read_file", args{"containerId": "b", "path": "f"})

	if err := s.b.Close(); err != nil {
		t.Error(err)
	}
	s.refused(sandboxtools.Closed, "init", args{})
	s.refused(sandboxtools.Closed, "exists", args{"containerId": "a", "path": "f"})
}

// A sandbox is closed when it is idle, and not while it is in use.
func TestToolsIdle(t *testing.T) {
	const limit = 2 * time.Second
	s := newTools(t, sandboxtools.Options{IdleLimit: limit})
	s.call("init", args{"containerId": "b"})
	s.call("init", args{"containerId": "a"})
	last := time.Now()
	use := func(name string, a args) {
		t.Helper()
		a["containerId"] = "a"
		if _, err := s.try(name, a); err != nil {
			if time.Since(last) < limit {
				t.Fatal(err)
			}
			s.call("init", args{"containerId": "a"}) // a slow machine may not have used it in time
		}
		last = time.Now()
	}
	use("command", args{"executable": "sleep", "args": []string{"3"}}) // longer than its idle time
	for range 4 {
		use("exists", args{"path": "/"})
		time.Sleep(limit / 3)
		use("exists", args{"path": "/"})
	}
	s.refused(sandboxtools.NotFound, "exists", args{"containerId": "b", "path": "/"})
	time.Sleep(limit + time.Second)
	s.refused(sandboxtools.NotFound, "exists", args{"containerId": "a", "path": "/"})
	for deadline := time.Now().Add(30 * time.Second); len(harness.JailState()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("left: %v", harness.JailState())
		}
	}
}

// Concurrent calls on one sandbox do not disturb each other. Destroying it ends them all.
func TestToolsConcurrently(t *testing.T) {
	s := newTools(t, sandboxtools.Options{})
	s.call("init", args{"containerId": "a"})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			dir := fmt.Sprintf("d%d", i)
			for j := range 20 {
				text := fmt.Sprintf("%d of %d", j, i)
				a := args{"containerId": "a", "path": dir + "/f", "content": text, "createParentDirs": true}
				if _, err := s.try("write_file", a); err != nil {
					t.Error(err)
				}
				if r, err := s.try("read_file", args{"containerId": "a", "path": dir + "/f"}); err != nil || r["content"] != text {
					t.Error(r, err)
				}
				if _, err := s.try("list_directory", args{"containerId": "a", "path": "/workspace", "recursive": true}); err != nil {
					t.Error(err)
				}
			}
			r, err := s.try("command", args{"containerId": "a", "executable": "cat", "args": []string{"/workspace/" + dir + "/f"}})
			if err != nil || r["stdout"] != fmt.Sprintf("19 of %d", i) {
				t.Error(r, err)
			}
		})
	}
	all.Wait()
	for _, how := range []string{"stop", "destroy", "close"} {
		ended := make(chan sandboxtools.Code)
		go func() {
			_, err := s.try("command", args{"containerId": "a", "executable": "sh", "args": []string{"-c", "touch " + how + "; sleep 60"}, "workingDirectory": "/workspace"})
			ended <- sandboxtools.CodeOf(err)
		}()
		for started := false; !started; time.Sleep(10 * time.Millisecond) {
			r, err := s.try("exists", args{"containerId": "a", "path": how})
			started = err != nil || r["exists"] == true
		}
		switch how {
		case "stop":
			s.call("destroy", args{"containerId": "a", "removeContainer": false})
		case "destroy":
			s.call("destroy", args{"containerId": "a"})
		case "close":
			if err := s.b.Close(); err != nil {
				t.Error(err)
			}
		}
		select {
		case code := <-ended:
			if code != sandboxtools.Closed {
				t.Errorf("%s: %q", how, code)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s does not end a command", how)
		}
		switch how {
		case "stop":
			s.call("destroy", args{"containerId": "a"})
			fallthrough
		case "destroy":
			s.call("init", args{"containerId": "a"})
		}
	}
}

// Of several concurrent callers that ask for the same id, one gets it. No sandbox is created
// after Close.
func TestToolsInitConcurrently(t *testing.T) {
	s := newTools(t, sandboxtools.Options{MaxSandboxes: 3})
	counts := func(n int, a args) map[sandboxtools.Code]int {
		var mu sync.Mutex
		var all sync.WaitGroup
		got := map[sandboxtools.Code]int{}
		for range n {
			all.Go(func() {
				_, err := s.try("init", a)
				mu.Lock()
				defer mu.Unlock()
				got[sandboxtools.CodeOf(err)]++
			})
		}
		all.Wait()
		return got
	}
	if diff := gocmp.Diff(map[sandboxtools.Code]int{"": 1, sandboxtools.Exists: 5}, counts(6, args{"containerId": "a"})); diff != "" {
		t.Error(diff)
	}
	if diff := gocmp.Diff(map[sandboxtools.Code]int{"": 2, sandboxtools.Limit: 4}, counts(6, args{})); diff != "" {
		t.Error(diff)
	}
	s.call("destroy", args{"containerId": "a"})
	done := make(chan error)
	go func() {
		time.Sleep(5 * time.Millisecond)
		done <- s.b.Close()
	}()
	got := counts(4, args{})
	if err := <-done; err != nil || got[""]+got[sandboxtools.Limit]+got[sandboxtools.Closed] != 4 || len(harness.JailState()) > 0 {
		t.Error(got, err, harness.JailState())
	}
}
