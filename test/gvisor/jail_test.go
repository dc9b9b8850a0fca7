package gvisor

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gaol/test/harness"
	"gaol/test/internettest"
)

func TestMain(m *testing.M) {
	if parent := os.Getenv(hostVar); parent != "" {
		beHost(parent)
	}
	os.Exit(internettest.Main(func() int { return harness.RunTests(m) }))
}

// runscVar names the program of make gvisor.
const runscVar = "GAOL_TEST_RUNSC"

// object is an object of the configuration.
type object = map[string]any

// capabilities are the capabilities of root in the sandbox.
const capabilities = `CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_FSETID CAP_KILL CAP_SETGID CAP_SETUID CAP_SETPCAP
	CAP_NET_ADMIN CAP_NET_RAW CAP_SYS_CHROOT CAP_SYS_PTRACE CAP_SYS_ADMIN CAP_SYS_RESOURCE CAP_MKNOD CAP_SETFCAP CAP_NET_BIND_SERVICE`

// inGVisor runs a shell script in a gVisor sandbox without a network. It has the default image, gaol and a store.
func inGVisor(t *testing.T, script string) string {
	t.Helper()
	runsc, dir := os.Getenv(runscVar), t.TempDir()
	if runsc == "" {
		t.Skip("make test-gvisor runs this test")
	}
	image := harness.DefaultImage(t)
	folder := filepath.Dir(image.Root())
	harness.LinkDefaultImage(t, dir)   // for its names
	root := filepath.Join(dir, "root") // its programs are the image's; runsc makes mount points in it
	if err := errors.Join(os.Mkdir(root, 0o755), os.Symlink("usr/bin", filepath.Join(root, "bin")), os.Symlink("usr/lib", filepath.Join(root, "lib")), os.Symlink("usr/lib64", filepath.Join(root, "lib64"))); err != nil {
		t.Fatal(err)
	}
	mounts := []object{{"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup"}}
	for at, kind := range map[string]string{"/proc": "proc", "/sys": "sysfs", "/dev": "tmpfs", "/tmp": "tmpfs", "/run": "tmpfs"} {
		mounts = append(mounts, object{"destination": at, "type": kind, "source": kind})
	}
	const store = "/var/lib/gaol"
	for at, source := range map[string]string{
		"/usr": filepath.Join(image.Root(), "usr"), "/gaol": harness.Gaol(t), store + "/names": filepath.Join(dir, "names"), filepath.Join(store, "images", filepath.Base(folder)): folder,
	} {
		mounts = append(mounts, object{"destination": at, "type": "bind", "source": source, "options": []string{"bind", "ro"}})
	}
	all := strings.Fields(capabilities)
	text, err := json.Marshal(object{
		"ociVersion": "1.0.0", "root": object{"path": root}, "mounts": mounts,
		"process": object{
			"args": []string{"/bin/sh", "-c", script}, "cwd": "/", "user": object{}, "env": []string{"PATH=/usr/bin:/", "GAOL_SLOW=10"},
			"capabilities": object{"bounding": all, "effective": all, "permitted": all, "inheritable": all},
		},
		"linux": object{"namespaces": []object{{"type": "pid"}, {"type": "network"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}}},
	})
	state, id := filepath.Join(dir, "state"), "test"
	if err = errors.Join(err, os.Mkdir(state, 0o700), os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)); err != nil {
		t.Fatal(err)
	}
	defer func() {
		out, err := exec.Command(runsc, "--root", state, "delete", "-force", id).CombinedOutput()
		if left := unix.Unmount(filepath.Join(state, "null-netns"), 0); err != nil || left != nil && left != unix.EINVAL && left != unix.ENOENT {
			t.Errorf("%v: %s, null-netns: %v", err, out, left)
		}
	}()
	run := exec.CommandContext(t.Context(), runsc, "--root", state, "--ignore-cgroups", "--network=none", "--overlay2=root:memory", "--in-sandbox-cgroup=v2",
		"run", "-bundle", dir, id)
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// result contains fields of the output of gaol run --json.
type result struct {
	Stdout         string
	ExitCode       int
	Signal, Cause  string
	Value, Denials any
	Launcher       string
}

// The native jail runs in gVisor, with both launchers. Programs that end in any way leave nothing that hangs.
func TestPrograms(t *testing.T) {
	programs := []struct {
		flags, code string
		want        result
	}{
		{"", `console.log('out'); __return({ a: [1, null, 'x'] })`, result{Stdout: "out\n", Value: object{"a": []any{1.0, nil, "x"}}}},
		{"", `throw new Error('thrown')`, result{ExitCode: 1, Cause: "error"}},
		{"", `Promise.reject(new Error('rejected'))`, result{ExitCode: 1, Cause: "error"}},
		{"", `setTimeout(() => process.exit(7), 10)`, result{ExitCode: 7}},
		{"", `process.kill(process.pid, 'SIGSEGV')`, result{ExitCode: 139, Signal: "SIGSEGV", Cause: "signal"}},
		{"--timeout 1s", `for (;;);`, result{ExitCode: 137, Signal: "SIGKILL", Cause: "timeout"}},
		{"", `__return(require('node:child_process').execSync('id -u; pwd').toString())`, result{Value: "1000\n/workspace\n"}},
		{"", `__return([process.getuid(), require('node:fs').readdirSync('/workspace'), process.argv[1].startsWith('/run/gaol/')])`,
			result{Value: []any{1000.0, []any{}, true}}},
		{"", `const fs = require('node:fs');
			fs.writeFileSync('a', 'text'); fs.mkdirSync('d/e', { recursive: true }); fs.renameSync('a', 'd/e/b');
			const refused = (f) => { try { f(); } catch (err) { return err.code; } };
			__return([fs.readFileSync('d/e/b', 'utf8'), refused(() => fs.writeFileSync('/etc/x', '')), refused(() => fs.readdirSync('/root/x'))])`,
			result{Value: []any{"text", "EACCES", "ENOENT"}}},
		{"--disk 20m", `const fs = require('node:fs');
			try { for (let i = 0; i < 100; i++) fs.writeFileSync('f' + i, Buffer.alloc(1 << 20)); } catch (err) { __return(err.code); }`, result{Value: "ENOSPC"}},
		{"--preset strict", `try { require('node:fs').writeFileSync('/tmp/x', ''); } catch (err) { __return(err.code); }`, result{Value: "EACCES"}},
		{"", `fetch('http://203.0.113.1/').catch((err) => __return(err.cause.code))`, result{Value: "ENETUNREACH"}},
		{"", `const s = require('node:http').createServer((q, r) => r.end('served')).listen(0, async () => {
			__return(await (await fetch('http://localhost:' + s.address().port)).text()); s.close(); })`, result{Value: "served"}},
		{"", `const { Worker } = require('node:worker_threads');
			new Worker('require("node:worker_threads").parentPort.postMessage(5)', { eval: true }).on('message', __return)`, result{Value: 5.0}},
	}
	launchers := []string{"exec", "zygote"}
	var script strings.Builder
	var want []result
	for _, p := range programs {
		for _, launcher := range launchers {
			if launcher == "exec" && p.flags == "--preset strict" { // see TestKernelWithLess
				continue
			}
			script.WriteString("gaol run --json --allow-degraded --launcher " + launcher + " " + p.flags + " -e '" + strings.ReplaceAll(p.code, "'", `'\''`) + "' 2>>/tmp/errors\n")
			p.want.Launcher, p.want.Denials = launcher, []any{}
			want = append(want, p.want)
		}
	}
	out := inGVisor(t, script.String()+"cat /tmp/errors >&2; exit 0")
	decoder := json.NewDecoder(strings.NewReader(out))
	for i, want := range want {
		var got result
		if err := decoder.Decode(&got); err != nil {
			t.Fatalf("program %d: %v\n%s", i, err, out)
		}
		if want.Cause == "error" {
			want.Cause = got.Cause
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("program %d, launcher %s: -want +got:\n%s", i, want.Launcher, diff)
		}
	}
}

// gaol doctor names what gVisor lacks, and a sandbox needs AllowDegraded there.
func TestProfile(t *testing.T) {
	out := inGVisor(t, `gaol doctor 2>&1; gaol run -e 1 2>&1; echo $?; gaol run --allow-degraded -e 1 2>&1; gaol run --allow-degraded --allow-net api.example.com -e 1 2>&1; exit 0`)
	for _, want := range []string{
		`without ["mount_setattr" "limits of terminals" "modes of /proc/net" "ports below 1024 for all users" "limits of cgroups and of mounted file systems" ` +
			`"lists of sockets" "limits of signals and message queues" "PR_GET_TID_ADDRESS" "PR_SET_MM" "notifications of system call filters" "Landlock" "BPF"]`,
		"gaol: create: limit memory: unsupported operation", "\n125\n", "this kernel does not enforce: ", "limits of memory, processors and the number of files",
		"the kernel lacks BPF, which external hosts need",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}
