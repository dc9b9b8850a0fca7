package attack

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// Users of the tests. Nothing on the machine belongs to their numbers.
var (
	mallory = servertest.User{UID: 61001, GID: 61001, Groups: []int{61010}}
	alice   = servertest.User{UID: 61002, GID: 61002}
	// ids above the range of a jail
	carol = servertest.User{UID: 261003, GID: 261003}
)

// entry is a file or a folder of the machine.
type entry struct {
	path     string // ends in a slash for a folder
	uid, gid int
	mode     os.FileMode
}

// secret is the content of all files.
const secret = "content"

// makeTree makes a folder with entries, as a base for mounts.
func makeTree(t *testing.T, entries ...entry) (base string) {
	t.Helper()
	base = servertest.PublicDir(t)
	for _, e := range entries {
		path := filepath.Join(base, e.path)
		var err error
		if strings.HasSuffix(e.path, "/") {
			err = os.Mkdir(path, 0o700)
		} else {
			err = os.WriteFile(path, []byte(secret), 0o600)
		}
		if err == nil {
			err = os.Chown(path, e.uid, e.gid)
		}
		if err == nil {
			err = os.Chmod(path, e.mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return base
}

// sharedTree has folders of several users, which all may search.
func sharedTree(t *testing.T) (base string) {
	const m, a, c, shared = 61001, 61002, 261003, 61010
	return makeTree(t,
		entry{"own/", m, m, 0o755}, entry{"own/file", m, m, 0o600}, entry{"own/root-only", 0, 0, 0o600}, entry{"own/of-alice", a, a, 0o600},
		entry{"own/of-all", 0, 0, 0o644}, entry{"own/of-group", 0, m, 0o640}, entry{"own/closed/", 0, 0, 0o700}, entry{"own/closed/file", 0, 0, 0o644},
		entry{"own/guest-id", 1000, 1000, 0o600},
		entry{"root/", 0, 0, 0o755}, entry{"root/secret", 0, 0, 0o600}, entry{"root/public", 0, 0, 0o644},
		entry{"alice/", a, a, 0o755}, entry{"alice/secret", a, a, 0o600}, entry{"alice/public", a, a, 0o644}, entry{"alice/private/", a, a, 0o700}, entry{"alice/private/file", a, a, 0o644},
		entry{"locked/", a, a, 0o700}, entry{"locked/open/", m, m, 0o777},
		entry{"team/", 0, shared, 0o2770}, entry{"team/file", a, shared, 0o640}, entry{"team/hidden", a, a, 0o640},
		entry{"carol/", c, c, 0o700}, entry{"carol/file", c, c, 0o600}, entry{"carol/other", c + 1, c + 1, 0o600},
		entry{"guest/", 1000, 1000, 0o755}, entry{"guest/secret", 1000, 1000, 0o600},
		entry{"tmp/", 0, 0, 0o1777}, entry{"tmp/of-alice", a, a, 0o644},
	)
}

func withMounts(base string) func(*settings.Settings) {
	return func(s *settings.Settings) { s.Mounts = &settings.Mounts{Base: base, NodeModules: true} }
}

// guestTries is a program that tries to read all files below /m and to change them, and prints what
// succeeded.
const guestTries = `
import fs from 'node:fs';
const tries = (path, verb, f) => { try { f(); console.log(verb + ' ' + (path.slice(3) || '.')); } catch (e) { if (!['EACCES', 'EPERM', 'EROFS', 'EISDIR', 'EOVERFLOW'].includes(e.code)) console.log(path, e.message) } };
const walk = path => {
	if (fs.lstatSync(path).isDirectory()) {
		let names = [];
		try { names = fs.readdirSync(path) } catch {}
		tries(path, 'create', () => { fs.writeFileSync(path + '/new', 'x'); fs.rmSync(path + '/new') });
		names.forEach(name => walk(path + '/' + name));
		return;
	}
	tries(path, 'read', () => fs.readFileSync(path));
	tries(path, 'write', () => fs.closeSync(fs.openSync(path, 'a')));
	tries(path, 'chmod', () => fs.chmodSync(path, fs.statSync(path).mode & 0o777));
};
walk('/m');
`

// In a mounted folder a guest acts with the rights of its user, and no more.
func TestMountGivesNoMoreThanTheUserHas(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Settings: withMounts(sharedTree(t))})
	for _, c := range []struct {
		user         servertest.User
		source, mode string
		want         string
	}{
		{mallory, "own", "ro", "read file, read of-all, read of-group"},
		{mallory, "own", "rw", "chmod file, create ., read file, read of-all, read of-group, write file"},
		{mallory, "own", "cow", "chmod file, create ., read file, read of-all, read of-group, write file"},
		{mallory, "root", "ro", "read public"},
		{mallory, "root", "cow", "read public"},
		{mallory, "alice", "ro", "read public"},
		{mallory, "team", "rw", "create ., read file"},
		{mallory, "guest", "ro", ""},
		{mallory, "tmp", "rw", "create ., read of-alice"},
		{alice, "own", "ro", "read of-alice, read of-all"},
		{carol, "carol", "rw", "chmod file, create ., read file, write file"},
	} {
		t.Run(fmt.Sprint(c.user.UID, c.source, c.mode), func(t *testing.T) {
			if diff := cmp.Diff(c.want, tryMount(t, s.Client(t, c.user), c.source, c.mode)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// tryMount mounts a folder and returns a guest's successful operations there.
func tryMount(t *testing.T, c *http.Client, source, access string) string {
	t.Helper()
	r := servertest.Send(t, c, "POST", "/v1/run", map[string]any{"code": guestTries, "mounts": []any{map[string]string{"source": source, "target": "/m", "access": access}}})
	r.Want(t, http.StatusOK)
	var run struct{ Stdout, Stderr string }
	r.Into(t, &run)
	if run.Stderr != "" {
		t.Error(run.Stderr)
	}
	lines := strings.Split(strings.TrimSpace(run.Stdout), "\n")
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

// Folders that the user may not open, or not change, are not mounted at all.
func TestMountRefused(t *testing.T) {
	base := sharedTree(t)
	if err := errors.Join(os.Symlink("own", base+"/link"), os.Symlink("/", base+"/own/up"), os.Lchown(base+"/own/up", mallory.UID, mallory.GID)); err != nil {
		t.Fatal(err)
	}
	s := servertest.Start(t, servertest.Options{Settings: withMounts(base)})
	c := s.Client(t, mallory)
	for _, m := range []struct {
		source, access string
		status         int
	}{
		{"locked", "ro", 403}, {"locked/open", "ro", 403}, {"alice/private", "ro", 403}, {"own/closed", "cow", 403}, {"carol", "ro", 403},
		{"root", "rw", 403}, {"alice", "rw", 403}, {base + "/alice", "rw", 403},
		{"link", "ro", 403}, {"own/up", "ro", 403}, {"own/up/etc", "ro", 403},
		{"..", "ro", 403}, {"own/../..", "ro", 403}, {"/", "ro", 403}, {"/etc", "ro", 403}, {".", "ro", 403}, {base, "ro", 403}, {base + "/../" + filepath.Base(base) + "x", "ro", 403},
		{"own/file", "ro", 422}, {"missing", "ro", 422}, {"own\x00", "ro", 422}, {strings.Repeat("a/", 2000), "ro", 422}, {"", "ro", 422},
		{"/proc/self/fd/3", "ro", 403}, {"own", "owner", 422},
	} {
		r := servertest.Send(t, c, "POST", "/v1/run", map[string]any{"code": "", "mounts": []any{map[string]string{"source": m.source, "target": "/m", "access": m.access}}})
		if p := r.Want(t, m.status); strings.Contains(p.Detail, "/proc/self") && m.source != "/proc/self/fd/3" {
			t.Errorf("%q: %s", m.source, p.Detail)
		}
		if t.Failed() {
			t.Fatalf("source %q", m.source)
		}
	}
}

// The host writes files and makes folders in a mount for the guest, with its rights.
func TestMountFilesOfRequest(t *testing.T) {
	base := sharedTree(t)
	s := servertest.Start(t, servertest.Options{Settings: withMounts(base)})
	c := s.Client(t, mallory)
	create := func(status int, change map[string]any) {
		t.Helper()
		body := map[string]any{"mounts": []any{map[string]string{"source": "own", "target": "/m", "access": "rw"}}}
		maps.Copy(body, change)
		r := servertest.Send(t, c, "POST", "/v1/sandboxes", body)
		if r.Status == http.StatusInternalServerError && status == 0 {
			t.Log(s.Log.String())
		}
		if status == 0 && r.Status == http.StatusCreated || status != 0 && r.Status != status {
			t.Errorf("%v: status %d: %s", change, r.Status, r.Body)
		}
	}
	create(0, map[string]any{"files": map[string]string{"/m/root-only": "changed"}})
	create(0, map[string]any{"files": map[string]string{"/m/closed/new": "new"}})
	create(0, map[string]any{"cwd": "/m/closed/cwd"})
	create(http.StatusCreated, map[string]any{"files": map[string]string{"/m/new": "new"}})
	for _, path := range []string{"own/root-only", "own/closed/file"} {
		if text, err := os.ReadFile(filepath.Join(base, path)); err != nil || string(text) != secret {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	if names := harness.Glob(base + "/own/closed/*"); len(names) != 1 {
		t.Errorf("%q", names)
	}
	var info unix.Stat_t
	if err := unix.Stat(base+"/own/new", &info); err != nil || int(info.Uid) != mallory.UID || int(info.Gid) != mallory.GID {
		t.Errorf("%+v, %v", info, err)
	}
}

// A path that changes while it is opened never leads to a folder that the user may not read.
func TestMountSwappedPath(t *testing.T) {
	base := sharedTree(t)
	if err := errors.Join(os.Symlink(base+"/locked", base+"/own/link"), os.Mkdir(base+"/own/dir", 0o755), os.WriteFile(base+"/own/dir/fine", nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	stop, swapped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				swapped <- nil
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, base+"/own/link", unix.AT_FDCWD, base+"/own/dir", unix.RENAME_EXCHANGE); err != nil {
				swapped <- err
				return
			}
		}
	}()
	peer := &runtime.MountUser{UID: mallory.UID, GID: mallory.GID}
	opened, refused := 0, 0
	for range harness.Fewer(20000, 2000) {
		f, err := service.OpenHostFolder(base, "own/dir", peer, false)
		if err != nil {
			if !errors.Is(err, unix.ELOOP) && !errors.Is(err, unix.ENOTDIR) {
				t.Fatal(err)
			}
			refused++
			continue
		}
		if err := unix.Faccessat(int(f.Fd()), "fine", unix.F_OK, 0); err != nil {
			t.Error(err)
		}
		f.Close()
		opened++
	}
	close(stop)
	if err := <-swapped; err != nil {
		t.Fatal(err)
	}
	if opened == 0 || refused == 0 {
		t.Errorf("no race: opened %d, refused %d", opened, refused)
	}
}

// Tokens have no mounts, and by default users do not, either.
func TestMountsOffByDefault(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	for _, body := range []string{`{"mounts":[{"source":"x","target":"/m"}]}`, `{"nodeModules":"x"}`, `{"nodeModules":{"hostPath":"/x","guestPath":"/tmp/node_modules"}}`} {
		p := servertest.Send(t, s.Client(t, mallory), "POST", "/v1/sandboxes", body).Want(t, http.StatusForbidden)
		if !strings.Contains(p.Detail, "mounts.base") {
			t.Errorf("the problem names no setting: %s", p.Detail)
		}
	}
}

// Packages of the machine are read with the user's rights, too.
func TestNodeModulesOfUser(t *testing.T) {
	base := makeTree(t, entry{"p/", 0, 0, 0o755}, entry{"p/open/", 0, 0, 0o755}, entry{"p/open/index.js", 0, 0, 0o644}, entry{"p/open/key", 0, 0, 0o600})
	s := servertest.Start(t, servertest.Options{Settings: withMounts(base)})
	r := servertest.Send(t, s.Client(t, mallory), "POST", "/v1/run", map[string]any{
		"code": `import fs from 'node:fs'; for (const f of ['index.js', 'key']) try { console.log(fs.readFileSync('node_modules/open/' + f, 'utf8')) } catch (e) { console.log(e.code) }`, "nodeModules": "p",
	})
	r.Want(t, http.StatusOK)
	var run struct{ Stdout string }
	if r.Into(t, &run); run.Stdout != secret+"\nEACCES\n" {
		t.Errorf("%q, %s", run.Stdout, r.Body)
	}
	r = servertest.Send(t, s.Client(t, mallory), "POST", "/v1/run", map[string]any{
		"code": `import fs from 'node:fs'; console.log(import.meta.url, fs.readdirSync('/tmp/node_modules/open').length)`, "name": "/tmp/program-1.mjs",
		"nodeModules": map[string]string{"hostPath": "p", "guestPath": "/tmp/node_modules"},
	})
	if r.Into(t, &run); run.Stdout != "file:///tmp/program-1.mjs 2\n" {
		t.Errorf("%q, %s", run.Stdout, r.Body)
	}
}

// Without the user, a guest acts as the folder's owner: the test above would fail.
func TestMountWithoutUserShowsOwnersFiles(t *testing.T) {
	base := sharedTree(t)
	rt := harness.Create(t, runtime.Options{Mounts: []runtime.Mount{{Source: base + "/root", Target: "/m"}}})
	if got := harness.Output(t, rt, runtime.RunOptions{}, "cat", "/m/secret"); got != secret {
		t.Errorf("%q", got)
	}
}

// Targets that the image's tree cannot have are the caller's mistakes.
func TestMountTargets(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Settings: withMounts(sharedTree(t))})
	c := s.Client(t, mallory)
	for _, target := range []string{
		"/bin", "/lib", "/bin/x", "/etc/passwd", "/etc/passwd/x", "/", "/proc", "/proc/1", "/dev", "/usr/libexec", "/workspace/" + strings.Repeat("a", 256),
	} {
		for _, access := range []string{"ro", "rw", "cow"} {
			r := servertest.Send(t, c, "POST", "/v1/run", map[string]any{"code": "", "mounts": []any{map[string]string{"source": "own", "target": target, "access": access}}})
			if r.Status != http.StatusUnprocessableEntity {
				t.Errorf("%.40s, %s: %d %s", target, access, r.Status, r.Body)
			}
		}
	}
	if text := s.Log.String(); strings.Contains(text, "level=ERROR") {
		t.Error(text)
	}
}
