package run

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"gaol/jail/enter"
	"gaol/policy"
	"gaol/rootfs"
	"gaol/runtime"
	"gaol/test/harness"
)

// deriver derives images in a store of its own.
type deriver struct {
	*rootfs.Store
	runner runtime.StepRunner
}

func newDeriver(t *testing.T) deriver {
	t.Helper()
	dir := harness.ImportImage(t, harness.DefaultImage(t).Root(), rootfs.ImportOptions{TrustNode: true})
	s, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return deriver{s, runtime.StepRunner{Options: harness.Options(runtime.Options{})}}
}

// run derives an image by commands, and returns their output.
func (d deriver) run(ctx context.Context, commands ...string) (*rootfs.Image, string, error) {
	var progress bytes.Buffer
	o := rootfs.DeriveOptions{From: "app", Progress: &progress, NoCache: true}
	for _, c := range commands {
		o.Steps = append(o.Steps, rootfs.Step{Run: c, Runner: d.runner})
	}
	i, err := d.Derive(ctx, o)
	return i, progress.String(), err
}

// TestDerive runs programs in an image that commands have changed.
func TestDerive(t *testing.T) {
	if !harness.Needs(t, runtime.FeatureDerive) {
		return
	}
	d := newDeriver(t)
	t.Run("changes", func(t *testing.T) { testDerivedRun(t, d) })
	t.Run("confined", func(t *testing.T) { testDerivingIsConfined(t, d) })
	t.Run("permissions", func(t *testing.T) { testStepPermissions(t, d) })
	t.Run("hostile", func(t *testing.T) { testHostileSteps(t, d) })
	t.Run("failures", func(t *testing.T) { testDeriveFailures(t, d) })
	images, err := d.List()
	if err != nil || len(images) != 5 {
		t.Errorf("images %v, %v", images, err)
	}
}

func testDerivedRun(t *testing.T, d deriver) {
	i, err := d.Derive(t.Context(), rootfs.DeriveOptions{From: "app", Name: "derived", NoCache: true, Steps: []rootfs.Step{
		{Env: map[string]string{"GREETING": "hello", "PATH": "/opt/bin:$PATH"}},
		{Dir: "/opt/app"},
		{Run: "mkdir ../bin && printf '#!/bin/sh\\necho $GREETING $1\\n' >../bin/greet && chmod 700 ../bin/greet && greet step >made", Runner: d.runner},
		{User: "node"},
		{Run: "test $HOME = /home/node && echo mine >~/mine && ! touch /etc/mine 2>/dev/null && ! touch made 2>/dev/null", Runner: d.runner},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range harness.Launchers {
		rt := harness.CreateExact(t, harness.Options(runtime.Options{Store: d.Dir(), Image: i.ID, Launcher: l}))
		res := harness.Run(t, rt, `
			const { execSync } = require('child_process'), fs = require('fs');
			let denied = '';
			try { fs.writeFileSync('/opt/app/made', '') } catch (err) { denied = err.code }
			__return([execSync('greet run').toString(), fs.readFileSync('/opt/app/made', 'utf8'), fs.readFileSync('/home/node/mine', 'utf8'), process.env.GREETING, denied])`,
			runtime.RunOptions{Name: "x.cjs"})
		if res.Launcher != l || string(res.Value) != `["hello run\n","hello step\n","mine\n","hello","EACCES"]` {
			t.Errorf("%v: %s\n%s", res.Launcher, res.Value, res.Stderr)
		}
	}
}

// testDerivingIsConfined checks that a command is confined as a run is, apart from the files of the image.
func testDerivingIsConfined(t *testing.T, d deriver) {
	_, out, err := d.run(t.Context(), `
		set -e
		id -u
		grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\t\n' ' '; echo
		unshare -r true 2>/dev/null && echo namespace
		mount -t tmpfs none /mnt 2>/dev/null && echo mounted
		mknod /null c 1 3 2>/dev/null && echo device
		node -e 'require("net").connect(80, "192.0.2.1").on("error", (err) => console.log(err.code))'
		chmod 4755 /usr/bin/busybox 2>/dev/null && echo set-id
		ls /proc | grep -c '^[0-9]' | grep -qE '^.$' && echo few
		cat /usr/libexec/gaol/enter >/dev/null && rm -rf /usr/libexec/gaol && node -e 'console.log(1 + 1)'
		rm -rf /etc /usr/local/lib; ls /etc 2>/dev/null || echo removed`)
	want := "1000\nCapEff: 0000000000000000 CapBnd: 0000000000000000 NoNewPrivs: 1 Seccomp: 2 \nENETUNREACH\nfew\n2\nremoved\n"
	if _, after, _ := strings.Cut(out, "\n"); err != nil || !strings.HasPrefix(after, want) {
		t.Errorf("%v\n got %s\nwant %s", err, out, want)
	}
	if _, err := os.Stat(harness.DefaultImage(t).Root() + "/etc/passwd"); err != nil {
		t.Error(err)
	}
}

// testStepPermissions checks that permissions hold for files of the image, which a command otherwise owns.
func testStepPermissions(t *testing.T, d deriver) {
	readOnly := policy.Scope{Default: policy.Allow, Rules: []policy.Rule{
		{Mode: policy.Deny, Operations: []policy.Operation{"*"}, Paths: []string{"/etc/ssl/**"}},
		{Mode: policy.Deny, Operations: []policy.Operation{"write", "create_dir", "rm", "rename", "symlink", "chmod", "truncate"}, Paths: []string{"/opt/**"}},
	}}
	for _, tt := range []struct {
		permissions policy.Permissions
		command     string
	}{
		{policy.Workspace("/workspace"), "echo >/workspace/a; ! touch /etc/a; ! mkdir /a; ! chmod 700 /etc/passwd; ! mv /usr /moved; ! rm /etc/passwd"},
		{policy.Permissions{FS: readOnly}, "touch /etc/a; mkdir /a; ! ls /etc/ssl; ! mv /etc/ssl /etc/moved; ! mv /etc /moved; ! touch /opt/a; ! mv /opt /moved; ! chmod 700 /opt"},
	} {
		limited := d
		limited.runner.Options.Permissions = tt.permissions
		command := strings.ReplaceAll(tt.command, "; ! ", "; denied ")
		if _, out, err := limited.run(t.Context(), "set -e; denied() { if \"$@\" 2>/dev/null; then echo \"$@\"; exit 7; fi; }; "+command); err != nil {
			t.Errorf("%s: %v\n%s", tt.command, err, out)
		}
	}
}

// testHostileSteps checks that a command which replaces programs of the jail and of Node gains nothing: the next step and
// runs start by gaol's own, and files that lead to the host's are only links.
func testHostileSteps(t *testing.T, d deriver) {
	i, out, err := d.run(t.Context(), `
		for f in enter catatonit command zygote.so; do printf '#!/bin/sh\necho hostile\n' >/usr/libexec/gaol/$f; chmod 755 /usr/libexec/gaol/$f; done
		printf '#!/bin/sh\necho hostile node\n' >/node && chmod 755 /node && mv /node /usr/local/bin/node
		ln -s /proc/1/root/etc/shadow /shadow; rm -rf /home /tmp; ln -s / /home; mkfifo /pipe`,
		"node; ls /usr/libexec/gaol; cat /shadow 2>/dev/null; ls -ld /home/node /pipe 2>&1; echo fine")
	if err != nil || !strings.Contains(out, "hostile node\n") || strings.Contains(out, "root:") || !strings.Contains(out, "fine\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{enter.Path, enter.Reaper} {
		text, err := os.ReadFile(i.Root() + name)
		if err != nil || bytes.Contains(text, []byte("hostile")) {
			t.Errorf("%s: %q, %v", name, text[:min(40, len(text))], err)
		}
	}
	o := harness.Forking(runtime.Options{Store: d.Dir(), Image: i.ID})
	if err := harness.CreateError(t, o); !errors.Is(err, runtime.ErrUnsupported) {
		t.Errorf("the hostile Node may fork: %v", err)
	}
	if _, err := d.Remove(i.ID); err != nil {
		t.Error(err)
	}
	if _, _, err := d.run(t.Context(), "mv /usr/libexec /usr/moved 2>/dev/null; ln -s /usr/moved /usr/libexec"); !errors.Is(err, rootfs.ErrRefused) {
		t.Errorf("a link to the folder of gaol's programs: %v", err)
	}
}

// testDeriveFailures checks the errors of commands that fail, and that nothing is left of them.
func testDeriveFailures(t *testing.T, d deriver) {
	for command, want := range map[string]struct {
		cause  runtime.Cause
		code   int
		denied string
	}{
		"exit 3":                             {"", 3, ""},
		"head -c 100m /dev/zero >/large":     {"", 1, "disk"},
		"sleep 100":                          {runtime.CauseTimeout, 137, ""},
		"node -e 'Buffer.alloc(2e8).fill()'": {runtime.CauseMemory, 137, ""},
	} {
		limited := d
		limited.runner.Options.Limits = runtime.Limits{Disk: 80 << 20, Memory: 128 << 20}
		if want.cause == runtime.CauseTimeout {
			limited.runner.Timeout = time.Second
		}
		_, out, err := limited.run(t.Context(), command)
		failed, ok := errors.AsType[*runtime.CommandError](err)
		if !ok || failed.Result.Cause != want.cause || failed.Result.ExitCode != want.code {
			t.Errorf("%s: %v, %+v\n%s", command, err, failed, out)
			continue
		}
		if want.denied != "" && (len(failed.Result.Denials) == 0 || failed.Result.Denials[0].Operation != policy.Operation(want.denied)) {
			t.Errorf("%s: denials %+v", command, failed.Result.Denials)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	progress := writerFunc(func(text []byte) {
		if bytes.Contains(text, []byte("begun")) {
			cancel()
		}
	})
	if _, err := d.Derive(ctx, rootfs.DeriveOptions{From: "app", NoCache: true, Progress: progress, Steps: []rootfs.Step{{Run: "echo begun; sleep 100", Runner: d.runner}}}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if left, err := os.ReadDir(d.Dir() + "/tmp"); err != nil || len(left) > 0 {
		t.Errorf("left in tmp: %v, %v", left, err)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(text []byte) (int, error) {
	f(text)
	return len(text), nil
}
