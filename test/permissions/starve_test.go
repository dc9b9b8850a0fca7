package permissions

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// A host without descriptors to answer a guest returns an error. No guest is
// reported as killed, and none gets wrong answers.
func TestPermissionHostOutOfFiles(t *testing.T) {
	const code = `__return(require('child_process').spawnSync('/bin/true').error?.code ?? 'ok')`
	o := runtime.RunOptions{Name: "spawn.cjs"}
	rt := harness.Create(t, runtime.Options{Permissions: policy.Permissions{ChildProcess: denied}})
	harness.Run(t, rt, code, o) // some descriptors are opened once and kept
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) }()
	failed, ran := 0, 0
	for more := 0; ran < 5; more++ {
		low := limit
		low.Cur = uint64(len(open) + more)
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
			t.Fatal(err)
		}
		res, err := rt.Run(t.Context(), code, o)
		switch {
		case err != nil:
			failed, ran = failed+1, 0
		case string(res.Value) == `"EPERM"`:
			ran++
		default:
			t.Errorf("with %d more: %s, cause %q", more, res.Value, res.Cause)
			ran++
		}
	}
	if failed == 0 {
		t.Error("no run lacked a descriptor")
	}
}
