package host

import (
	"debug/elf"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"gaol/rootfs"
	"gaol/runtime"
	"gaol/test/harness"
)

// work is what programs of the default image do in a jail, with the default permissions.
// All of it runs in one runtime, in order.
var work = []struct{ name, script, want string }{
	{"bash", `a=(x 'y z'); declare -A m=([k]=v); [[ abc =~ ^a(.)c$ ]]; echo "${#a[@]} ${a[-1]} ${m[k]} ${BASH_REMATCH[1]}"; type -P tar`, "2 y z v b\n/usr/bin/tar\n"},
	{"sh", `readlink -f /bin/sh; sh -c 'tar --version' | head -n 1 | cut -c 1-13`, "/usr/bin/dash\ntar (GNU tar)\n"},
	{"locale", `echo 'äöü' | { read -r s; echo ${#s}; }; getent passwd node | cut -d : -f 1,3`, "3\nnode:1000\n"},
	{"git", `set -e; git init -q r; cd r; git config user.name n; git config user.email n@example; echo 1 > f; git add f; git commit -q -m one
		echo 2 >> f; git diff --stat | head -n 1; git status -s; git commit -q -a -m two; git log --format=%s; git rev-parse HEAD~1 | wc -c`,
		" f | 1 +\n M f\ntwo\none\n41\n"},
	{"git clone", `set -e; git clone -q --bare r r.git; git clone -q r.git c; cd c; git log --oneline | wc -l; echo 3 > g; git add .; git -c user.name=n -c user.email=n@example commit -q -m three
		git push -q; git -C ../r.git log -1 --format=%s; git fsck --no-progress; git submodule status; git -c protocol.file.allow=always submodule --quiet add ../r.git s; cat s/g`,
		"2\nthree\n3\n"},
	{"git over https", `git ls-remote https://localhost:1/r 2>&1 | grep -c "^fatal: unable to access 'https://localhost:1/r/': Failed to connect to localhost port 1"`, "1\n"},
	{"jq", `echo '{"a": [1, 2, {"b": "ä"}]}' | jq -c '.a[2].b, (.a | length), (.a[:2] | add)'`, "\"ä\"\n3\n3\n"},
	{"tar", `mkdir d; echo hi > d/f; ln -s f d/l; tar --sort=name -czf d.tgz d; rm -r d; tar -xzf d.tgz; cat d/l; tar -cjf d.tbz d; tar -tjf d.tbz | sort`, "hi\nd/\nd/f\nd/l\n"},
	{"unzip", `printf 'UEsDBBQAAAAAAAAAIVh6em/tAwAAAAMAAAABAAAAYWhpClBLAQIUAxQAAAAAAAAAIVh6em/tAwAAAAMAAAABAAAAAAAAAAAAAACAAQAAAABhUEsFBgAAAAABAAEALwAAACIAAAAAAA==' |
		base64 -d > a.zip; unzip -q a.zip && cat a`, "hi\n"},
	{"zip", `echo hi > z; zip -q b.zip z d/f && unzip -Z1 b.zip`, "z\nd/f\n"},
	{"make", `printf 'a: b\n\t@cat b\nb:\n\t@echo made > b\n' > Makefile; make`, "made\n"},
	{"ripgrep", `mkdir g; echo 'an needle' > g/f; echo hay > g/h; rg -n needle g`, "g/f:1:an needle\n"},
	{"sqlite3", `sqlite3 db 'create table t (a); insert into t values (41)'; sqlite3 db 'select a + 1 from t'`, "42\n"},
	{"ssh", `ssh-keygen -q -t ed25519 -N '' -f key && ssh-keygen -l -f key.pub | cut -d ' ' -f 4; ssh -T -o BatchMode=yes localhost -p 1 2>&1 || true`,
		"(ED25519)\nssh: connect to host localhost port 1: Connection refused\r\n"},
	{"nohup", `nohup echo hi 2> /dev/null < /dev/null`, "hi\n"},
	{"curl", `curl --version | cut -d ' ' -f 1 | head -n 1; curl -sS file:///workspace/d/f; curl -s https://localhost:1/; echo $?`, "curl\nhi\n7\n"},
	{"certificates", `grep -c 'BEGIN CERTIFICATE' /etc/ssl/certs/ca-certificates.crt | awk '{ print ($1 > 100) }'`, "1\n"},
	{"fontconfig", `fc-match -f '%{family}\n' sans; fc-match -f '%{family} %{style}\n' monospace:bold; fc-list : file | wc -l`, "DejaVu Sans\nDejaVu Sans Mono Bold\n6\n"},
	{"time zones", `for z in UTC America/New_York Asia/Kolkata; do TZ=$z date -d @1720000000 +'%H:%M %Z'; done; node -p 'Intl.DateTimeFormat().resolvedOptions().timeZone'`,
		"09:46 UTC\n05:46 EDT\n15:16 IST\nUTC\n"},
	{"services", `getent services https`, "https                 443/tcp\n"},
}

func TestImagePrograms(t *testing.T) {
	rt := harness.Create(t, runtime.Options{Limits: runtime.Limits{Pids: 128}})
	for _, tc := range work {
		res, err := rt.Command(t.Context(), "bash", []string{"-c", tc.script}, runtime.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if string(res.Stdout) != tc.want || res.ExitCode != 0 {
			t.Errorf("%s: stdout %q, want %q; exit code %d, stderr %s", tc.name, res.Stdout, tc.want, res.ExitCode, res.Stderr)
		}
	}
}

// Node programs can start the programs of the image.
func TestImageProgramsFromNode(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	res := harness.Run(t, rt, `
		import { execFileSync, execSync } from 'node:child_process';
		__return([
			execSync('git init -q x && git -C x status -s -b').toString(),
			execFileSync('jq', ['-r', '.a'], { input: '{"a":"b"}' }).toString(),
			execSync('echo $0 {1..3} | cat', { shell: '/bin/bash' }).toString(),
		]);`, runtime.RunOptions{})
	if got, want := string(res.Value), `["## No commits yet on master\n","b\n","/bin/bash 1 2 3\n"]`; got != want {
		t.Errorf("value %s, want %s; stderr %s", got, want, res.Stderr)
	}
}

// The manifest of the default image matches its files.
func TestImageManifest(t *testing.T) {
	store, err := rootfs.Open("")
	if err != nil {
		t.Fatal(err)
	}
	image, err := store.Ensure(t.Context(), "", rootfs.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bash", "git", "curl", "jq", "tar", "unzip", "zip", "make", "ripgrep", "sqlite3", "openssh-client", "ca-certificates", "tzdata", "fontconfig", "fonts-dejavu-core", "libc6"} {
		found := false
		for _, p := range image.Packages {
			found = found || p.Name == name && p.Version != "" && len(p.SHA256) == 64
		}
		if !found {
			t.Errorf("%s is not in %v", name, image.Packages)
		}
	}
	checkFiles(t, image.Root())
}

// checkFiles looks for files with set-id bits, dangling links, and programs that lack a
// library.
func checkFiles(t *testing.T, root string) {
	libraries := map[string]bool{}
	var needs []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if info.Mode().Type() == fs.ModeSymlink {
			if target, _ := os.Readlink(path); filepath.IsAbs(target) {
				path = filepath.Join(root, target)
			}
			if _, err := os.Stat(path); err != nil {
				t.Error(err)
			}
		}
		libraries[filepath.Base(path)] = true
		if f, err := elf.Open(path); err == nil {
			names, _ := f.ImportedLibraries()
			needs = append(needs, names...)
			_ = f.Close()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(needs) < 300 {
		t.Errorf("the image's programs need only %d libraries", len(needs))
	}
	for _, name := range needs {
		if !libraries[name] {
			t.Errorf("%s is missing", name)
		}
	}
}
