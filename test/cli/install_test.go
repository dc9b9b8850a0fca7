package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gaol/test/harness"
)

// run runs a command, which must succeed, and returns its output.
func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// gaol returns the path of the command line gaol, beside runc and nats-server.
func gaol(t testing.TB) string {
	t.Helper()
	harness.Runc(t)
	harness.NATS(t)
	return harness.Gaol(t)
}

// list lists the files below a folder.
func list(t testing.TB, root string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			paths = append(paths, strings.TrimPrefix(path, root))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// make install puts everything below DESTDIR and PREFIX, and keeps the configuration.
func TestInstall(t *testing.T) {
	dest := t.TempDir()
	install := func() {
		run(t, "make", "--no-print-directory", "install", "BIN="+gaol(t), "DESTDIR="+dest, "PREFIX=/opt/gaol")
	}
	install()
	have := " " + strings.Join(list(t, dest), " ") + " "
	for _, want := range []string{
		"/opt/gaol/bin/gaol", "/opt/gaol/lib/gaol/gaol-server", "/opt/gaol/lib/gaol/runc", "/opt/gaol/lib/gaol/nats-server", "/opt/gaol/share/doc/gaol/copyright", "/opt/gaol/lib/systemd/system/gaol.service", "/opt/gaol/lib/systemd/system/gaol.socket",
		"/opt/gaol/share/bash-completion/completions/gaol", "/opt/gaol/share/zsh/site-functions/_gaol",
		"/opt/gaol/share/fish/vendor_completions.d/gaol.fish", "/opt/gaol/share/man/man1/gaol-serve.1", "/etc/gaol/server.json",
	} {
		if !strings.Contains(have, " "+want+" ") {
			t.Errorf("%s is missing in%s", want, have)
		}
	}
	unit, err := os.ReadFile(dest + "/opt/gaol/lib/systemd/system/gaol.service")
	if err != nil || !bytes.Contains(unit, []byte("\nExecStart=/opt/gaol/bin/gaol serve --config=/etc/gaol/server.json\n")) {
		t.Errorf("the unit: %s, %v", unit, err)
	}
	if err := os.WriteFile(dest+"/etc/gaol/server.json", []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	install()
	if text, err := os.ReadFile(dest + "/etc/gaol/server.json"); err != nil || string(text) != "{}" {
		t.Errorf("the configuration was replaced: %s, %v", text, err)
	}
}

// make uninstall removes the files of make install. It keeps what users have made, unless PURGE is 1.
func TestUninstall(t *testing.T) {
	dest := t.TempDir()
	made := []string{"/etc/gaol/tokens", "/etc/other", "/opt/gaol/bin/other", "/opt/gaol/lib/gaol/other", "/opt/gaol/share/man/man1/gaolbird.1"}
	data := []string{"/var/cache/gaol/packages/p", "/var/lib/gaol/images/i", "/var/log/gaol/audit.log"}
	write := func(paths ...string) {
		for _, path := range paths {
			if err := errors.Join(os.MkdirAll(filepath.Dir(dest+path), 0o755), os.WriteFile(dest+path, nil, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	uninstall := func(edited bool, purge string, left ...string) {
		t.Helper()
		run(t, "make", "--no-print-directory", "install", "BIN="+gaol(t), "DESTDIR="+dest, "PREFIX=/opt/gaol")
		if edited {
			write("/etc/gaol/server.json")
		}
		out := run(t, "make", "--no-print-directory", "uninstall", "DESTDIR="+dest, "PREFIX=/opt/gaol", "PURGE="+purge)
		slices.Sort(left)
		if got := list(t, dest); !slices.Equal(got, left) {
			t.Errorf("%v are left, want %v", got, left)
		}
		if kept := strings.Contains(out, "kept "+dest+"/var/lib/gaol\n"); kept != slices.Contains(left, data[1]) {
			t.Errorf("output %q", out)
		}
	}
	uninstall(false, "")
	if _, err := os.Stat(dest + "/etc/gaol"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the configuration: %v", err)
	}
	write(made...)
	write(data...)
	uninstall(false, "", slices.Concat(made, data)...)
	uninstall(true, "", slices.Concat(made, data, []string{"/etc/gaol/server.json"})...)
	uninstall(true, "1", made...)
	uninstall(false, "1", made...)
}

// Without DESTDIR, there is also a group, which stays if it has members. The machine's files are hidden by others.
func TestUninstallGroup(t *testing.T) {
	dir := t.TempDir()
	script := `
		mount -t tmpfs tmpfs /run
		for hidden in /var/lib/gaol /var/cache/gaol /var/log; do
			[ ! -d $hidden ] || mount -t tmpfs tmpfs $hidden
		done
		mkdir $1/upper $1/work
		mount -t overlay overlay -o lowerdir=/etc,upperdir=$1/upper,workdir=$1/work /etc
		groupdel gaol 2>/dev/null || true
		rm -rf /etc/gaol
		for member in root ''; do
			.ci/install $2 '' $1/prefix
			getent group gaol
			[ -z "$member" ] || usermod -aG gaol $member
			.ci/uninstall '' $1/prefix
			if [ -n "$member" ]; then
				getent group gaol
				gpasswd -d $member gaol
			fi
		done
		! getent group gaol
		[ ! -e /etc/gaol ] && [ ! -e /var/log/gaol ]
		echo done`
	out := run(t, "unshare", "--mount", "--propagation", "private", "sh", "-ec", script, "sh", dir, gaol(t))
	if !strings.HasSuffix(out, "done\n") {
		t.Error(out)
	}
	if left := list(t, filepath.Join(dir, "prefix")); left != nil {
		t.Errorf("%v are left", left)
	}
}

// The completion of bash knows the flags of the installed program.
func TestCompletion(t *testing.T) {
	dest := t.TempDir()
	run(t, "make", "--no-print-directory", "install", "BIN="+gaol(t), "DESTDIR="+dest, "PREFIX=/usr")
	out := run(t, "bash", "-c", `
		PATH=$1/usr/bin:$PATH
		_get_comp_words_by_ref() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${words[cword]}; prev=${words[cword-1]}; }
		__ltrim_colon_completions() { :; }
		. "$1/usr/share/bash-completion/completions/gaol"
		COMP_WORDS=(gaol serve --print-u) COMP_CWORD=2 COMP_TYPE=9 COMP_LINE='gaol serve --print-u' COMP_POINT=20
		__start_gaol
		echo "${COMPREPLY[@]}"`, "bash", dest)
	if !strings.Contains(out, "--print-unit") {
		t.Errorf("the completion of --print-u: %q", out)
	}
	for _, sh := range []string{"zsh", "fish"} {
		if _, err := exec.LookPath(sh); err != nil {
			t.Logf("%s is not installed: its completion is not parsed", sh)
			continue
		}
		file := map[string]string{"zsh": "/usr/share/zsh/site-functions/_gaol", "fish": "/usr/share/fish/vendor_completions.d/gaol.fish"}[sh]
		run(t, sh, "-n", dest+file)
	}
}
