package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"gaol/test/harness"
)

// The scripts in testdata/script use the command line as a person would.
func TestScripts(t *testing.T) {
	bin := filepath.Dir(harness.Gaol(t))
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("HOST_SECRET", "sesame") // guests must not see it
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status":    status,
			"json":      jsonField,
			"nobody":    nobody,
			"smalldisk": smallDisk,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// status N PROG ARG... runs a program that must exit with N.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N PROG [ARG...]")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := err.(*exec.ExitError)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("exit status %d, want %s", got, args[0])
	}
}

// json KEY TEXT checks a field of the object on stdout; "-" means absent.
func jsonField(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: json KEY TEXT")
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &object); err != nil {
		ts.Fatalf("standard output is no single object: %v", err)
	}
	got, ok := object[args[0]]
	if !ok {
		got = json.RawMessage("-")
	}
	if string(got) != args[1] {
		ts.Fatalf("%s is %s, want %s", args[0], got, args[1])
	}
}

// nobody N PROG ARG... is status as a user without privileges.
func nobody(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: nobody N PROG [ARG...]")
	}
	// setpriv is in util-linux, which every Debian has.
	drop := []string{args[0], "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
	status(ts, neg, append(drop, args[1:]...))
}

// smallDisk DIR mounts a disk of 1 MiB at DIR until the script ends.
func smallDisk(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"))
	ts.Defer(func() { ts.Check(unix.Unmount(dir, unix.MNT_DETACH)) })
}
