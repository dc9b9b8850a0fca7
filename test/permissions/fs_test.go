package permissions

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
)

// act is a call of testdata/calls.c or calls.mjs, and the operations that it needs. The
// first denied one determines the errno. "" is a call that works whatever a run may do with
// files: only mounts, and so a runtime's own permissions, prevent it.
type act struct{ name, takes string }

// rawCalls are the calls of calls.c.
var rawCalls = []act{
	{"open_read", "read"}, {"open_write", "write"}, {"open_both", "read write"}, {"open_append", "write"}, {"open_create", "write"},
	{"open_trunc", "write truncate"}, {"open_read_trunc", "read truncate"}, {"open_link", "read"}, {"open_path", ""},
	{"creat_new", "write"}, {"creat_old", "write truncate"},
	{"mknod_file", "write"}, {"mknod_fifo", "write"}, {"mknod_device", "never"}, {"binds", "write"},
	{"mkdirs", "create_dir"}, {"unlinks", "rm"}, {"rmdirs", "rm"},
	{"rename_file", "rename rm write"}, {"rename_over", "rename rm write"}, {"rename_folder", "rename rm create_dir"}, {"rename_away", "rename rm write"},
	{"exchange", "rename rm write"}, {"exchange_folder", "rename rm write create_dir"},
	{"link_here", "rename write"}, {"link_away", "rename write"}, {"tmpfile_open", "write"}, {"tmpfile_link", "write rename"},
	{"symlinks", "symlink"}, {"readlinks", ""}, {"statxs", ""}, {"accesses", ""}, {"watches", "readdir"},
	{"chmods", "chmod"}, {"chmods2", "chmod"}, {"chmod_open", "read chmod"}, {"chowns", "chmod"}, {"touches", "chmod"}, {"touch_open", "read chmod"},
	{"xattr_read", ""}, {"chattr", "read chmod"},
	{"truncates", "truncate"}, {"truncate_open", "truncate write"}, {"lists", "readdir"},
	{"map_write", "read write"}, {"punch", "write"}, {"copy_range", "read write"}, {"handle", "never"},
	{"execs", "execute read"}, {"exec_fd", "execute read"}, {"exec_path_fd", "execute read"}, {"exec_memory", "read"},
}

// nodeCalls are the calls of calls.mjs.
var nodeCalls = []act{
	{"readFile", "read"}, {"readLink", "read"}, {"writeNew", "write"}, {"writeOld", "write truncate"}, {"appendFile", "write"},
	{"stat", ""}, {"lstat", ""}, {"access", ""}, {"readdir", "readdir"}, {"opendir", "readdir"},
	{"mkdir", "create_dir"}, {"mkdirs", "create_dir"}, {"mkdtemp", "create_dir"}, {"unlink", "rm"}, {"rmdir", "rm"}, {"rm", "rm readdir"},
	{"rename", "rename rm write"}, {"renameFolder", "rename rm create_dir"}, {"renameAway", "rename rm write"},
	{"link", "rename write"}, {"linkAway", "rename write"}, {"symlink", "symlink"}, {"readlink", ""}, {"realpath", ""},
	{"chmod", "chmod"}, {"chown", "chmod"}, {"utimes", "chmod"}, {"lutimes", "chmod"},
	{"truncate", "truncate read write"}, {"copyFile", "read write chmod"}, {"copyOver", "read write truncate chmod"}, {"execute", "execute read"},
}

// answer is the errno of a call under permissions that allow only those operations, 0 for
// success. seccomp refuses rename and chmod.
func (a act) answer(allowed []string) syscall.Errno {
	for op := range strings.FieldsSeq(a.takes) {
		switch {
		case slices.Contains(allowed, op):
		case op == "chmod", op == "rename", op == "never":
			return unix.EPERM
		default:
			return unix.EACCES
		}
	}
	return 0
}

func names(acts []act, ends ...string) []string {
	var list []string
	for _, a := range acts {
		for _, end := range append(ends, "")[:max(1, len(ends))] {
			list = append(list, a.name+end)
		}
	}
	return list
}

// everything are the operations of fs except stat and readlink, which the others imply.
var everything = strings.Fields("read write readdir create_dir rm rename symlink chmod truncate execute")

// allBut is everything but an operation, and without rename if that depends on it.
func allBut(op string) []string {
	return slices.DeleteFunc(slices.Clone(everything), func(o string) bool {
		return o == op || o == "rename" && (op == "rm" || op == "write")
	})
}

// only are permissions of a run that allow these operations of fs in the whole tree, and
// reading programs in /workspace/bin.
func only(ops []string) policy.Permissions {
	allowed := []policy.Operation{"stat", "readlink"}
	for _, op := range ops {
		allowed = append(allowed, policy.Operation(op))
	}
	return policy.Permissions{FS: policy.Scope{Default: policy.Deny, Rules: []policy.Rule{
		{Mode: policy.Allow, Operations: allowed, Paths: []string{"/**"}},
		{Mode: policy.Allow, Operations: []policy.Operation{"read", "execute", "stat", "readlink"}, Paths: []string{"/workspace/bin/**"}},
	}}}
}

const table = "/workspace/t"

// makeTable creates the folders that the calls work in.
func makeTable(t *testing.T, rt *runtime.NodeRuntime, names []string) {
	t.Helper()
	res := harness.Run(t, rt, source(t, "make.mjs"), runtime.RunOptions{
		Args:  []string{text(t, map[string]any{"dir": table, "names": names})},
		Stdin: bytes.NewReader(static(t, "calls")),
	})
	if res.ExitCode != 0 {
		t.Fatalf("%s", res.Stderr)
	}
}

// For each operation of fs alone, for all but each, and for all: every call has the errno
// that its operations imply, in Node's fs, in a native program, and in Node's own process
// if no program may be started.
func TestPermissionFSCalls(t *testing.T) {
	harness.Require(t, runtime.FeatureLandlock, only(nil))
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Files: 32 << 10}})
	put(t, rt, "/workspace/bin/calls", static(t, "calls"))
	put(t, rt, "/workspace/bin/calls.node", addon(t, "calls"))
	policies := map[string][]string{"all": everything, "none": {}}
	for _, op := range harness.Some(everything) {
		policies["without "+op] = allBut(op)
		if op != "rename" { // it depends on rm and write
			policies["only "+op] = []string{op}
		}
	}
	policies["only rename"] = []string{"rename", "rm", "write"}
	for name, allowed := range policies {
		t.Run(name, func(t *testing.T) {
			checkRaw(t, rt, allowed)
			checkAddon(t, rt, allowed)
			checkNode(t, rt, allowed)
		})
	}
}

func checkRaw(t *testing.T, rt *runtime.NodeRuntime, allowed []string) {
	t.Helper()
	makeTable(t, rt, names(rawCalls))
	got := strings.Fields(harness.Output(t, rt, runtime.RunOptions{Permissions: only(allowed)}, "/workspace/bin/calls", append([]string{table}, names(rawCalls)...)...))
	if len(got) != len(rawCalls) {
		t.Fatalf("%d answers to %d calls", len(got), len(rawCalls))
	}
	for i, a := range rawCalls {
		if n, err := strconv.Atoi(got[i]); err != nil || syscall.Errno(n) != a.answer(allowed) {
			t.Errorf("program, %s: %q (%s), want %q", a.name, syscall.Errno(n), got[i], a.answer(allowed))
		}
	}
}

// inAddon makes calls in Node's own process.
const inAddon = `const { createRequire } = await import('node:module');
	const { call } = createRequire('/workspace/')('/workspace/bin/calls.node');
	const { dir, names } = JSON.parse(process.argv[2]);
	__return(names.map(name => call(dir, name)))`

func checkAddon(t *testing.T, rt *runtime.NodeRuntime, allowed []string) {
	t.Helper()
	all := append(slices.Clone(rawCalls), act{"exec_here", ""})
	makeTable(t, rt, names(all))
	p := only(allowed)
	p.ChildProcess = policy.Scope{Default: policy.Deny}
	got := value[[]syscall.Errno](t, rt, inAddon, runtime.RunOptions{
		Permissions: p, Args: []string{text(t, map[string]any{"dir": table, "names": names(all)})}})
	for i, a := range all {
		want := a.answer(allowed)
		if strings.HasPrefix(a.name, "exec") {
			want = unix.EPERM // no program may be started, whatever fs allows
		}
		if got[i] != want {
			t.Errorf("addon, %s: %q, want %q", a.name, got[i], want)
		}
	}
}

func checkNode(t *testing.T, rt *runtime.NodeRuntime, allowed []string) {
	t.Helper()
	makeTable(t, rt, names(nodeCalls, ".sync", ".promise"))
	got := value[map[string][2]string](t, rt, source(t, "calls.mjs"), runtime.RunOptions{
		Permissions: only(allowed), Args: []string{text(t, map[string]any{"dir": table, "names": names(nodeCalls)})}})
	for _, a := range nodeCalls {
		want := unix.ErrnoName(a.answer(allowed))
		if got[a.name] != [2]string{want, want} {
			t.Errorf("node, %s: %q, want %q", a.name, got[a.name], want)
		}
	}
}
