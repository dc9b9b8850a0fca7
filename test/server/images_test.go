package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gaol/cmd/gaol/server/quota"
	"gaol/cmd/gaol/server/settings"
	"gaol/rootfs"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// The tenants that build images, beside alice and bob.
var (
	notAllowed  = servertest.User{UID: 61711, GID: 61711}
	smallImages = servertest.User{UID: 61712, GID: 61712}
	oneImage    = servertest.User{UID: 61713, GID: 61713}
)

// imageServer is a server whose store has nothing but the image app, and the same one by the name hidden.
type imageServer struct {
	*servertest.Server
	t       testing.TB
	store   *rootfs.Store
	base    *rootfs.Image
	clients map[int]*http.Client
}

func newImageServer(t testing.TB) *imageServer {
	t.Helper()
	s := &imageServer{t: t, clients: map[int]*http.Client{}}
	dir := harness.ImportImage(t, harness.ShellImage(t, "sh", "mkdir", "cat", "dd", "sleep", "id", "rm", "env"), rootfs.ImportOptions{})
	var err error
	if s.store, err = rootfs.Open(dir); err == nil {
		s.base, _, err = s.store.Tag(t.Context(), "app", "hidden")
	}
	if err != nil {
		t.Fatal(err)
	}
	some := quota.Limits{Images: 10, ImageBytes: 1 << 30}
	s.Server = servertest.Start(t, servertest.Options{Store: dir, Settings: func(o *settings.Settings) {
		o.Images = []string{"app"}
		o.Tenants = map[string]quota.Limits{
			"uid:61701": some, "uid:61702": some, "uid:61712": {Images: 2, ImageBytes: s.base.Size + 100_000}, "uid:61713": {Images: 1, ImageBytes: 1 << 30},
		}
	}})
	return s
}

func (s *imageServer) client(user servertest.User) *http.Client {
	if s.clients[user.UID] == nil {
		s.clients[user.UID] = s.Client(s.t, user)
	}
	return s.clients[user.UID]
}

// build builds an image from app.
func (s *imageServer) build(user servertest.User, name string, steps ...any) *servertest.Response {
	s.t.Helper()
	return servertest.Send(s.t, s.client(user), "POST", "/v1/images", map[string]any{"name": name, "from": "app", "steps": steps, "limits": smallSteps})
}

// smallSteps keep the disks of steps in memory.
var smallSteps = map[string]any{"diskBytes": 8 << 20, "memoryBytes": 64 << 20}

func runStep(command string) map[string]string { return map[string]string{"run": command} }

// sh runs a command in an image.
func (s *imageServer) sh(user servertest.User, image, command string) *servertest.Response {
	s.t.Helper()
	return servertest.Send(s.t, s.client(user), "POST", "/v1/command", map[string]any{"image": image, "command": "/bin/sh", "args": []string{"-c", command}})
}

// output returns the output of a command in an image, which runs by the exec launcher.
func (s *imageServer) output(user servertest.User, image, command string) string {
	s.t.Helper()
	var result struct{ Stdout, Launcher string }
	res := s.sh(user, image, command)
	res.Want(s.t, http.StatusOK)
	if res.Into(s.t, &result); result.Launcher != "exec" {
		s.t.Errorf("launcher %q: %s", result.Launcher, res.Body)
	}
	return result.Stdout
}

// names lists the images of a tenant.
func (s *imageServer) names(user servertest.User) (names []string) {
	s.t.Helper()
	var list struct{ Images []struct{ Name string } }
	res := servertest.Send(s.t, s.client(user), "GET", "/v1/images", nil)
	res.Want(s.t, http.StatusOK)
	res.Into(s.t, &list)
	for _, i := range list.Images {
		names = append(names, i.Name)
	}
	return names
}

func (s *imageServer) delete(user servertest.User, name string) *servertest.Response {
	s.t.Helper()
	return servertest.Send(s.t, s.client(user), "DELETE", "/v1/images/"+name, nil)
}

// left lists the images beside the base, and temporary folders.
func (s *imageServer) left() (left []string) {
	s.t.Helper()
	images, err := s.store.List()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, i := range images {
		if i.ID != s.base.ID {
			left = append(left, i.ID)
		}
	}
	return append(left, harness.Glob(filepath.Join(s.store.Dir(), "tmp", "*"))...)
}

// TestImages builds, uses, lists and deletes images of tenants.
func TestImages(t *testing.T) {
	s := newImageServer(t)
	if p := s.build(notAllowed, "mine", runStep("true")).Want(t, http.StatusForbidden); p.Code != "forbidden" || !strings.Contains(p.Detail, "quotas images and imageBytes") {
		t.Errorf("by default: %+v", p)
	}
	res := s.build(alice, "mine",
		runStep("echo made >/made; id -u"), map[string]any{"env": map[string]string{"A": "b"}}, map[string]any{"env": map[string]string{"B": "$A$A"}}, map[string]string{"dir": "/srv"}, runStep("echo $B >here"),
		map[string]string{"user": "node"}, runStep("if echo x >/denied; then exit 1; fi; echo own >~/own"))
	res.Want(t, http.StatusOK)
	var info struct {
		Name string
		Size int64
	}
	if res.Into(t, &info); info.Name != "mine" || info.Size <= s.base.Size || info.Size > s.base.Size+1000 {
		t.Errorf("%s, and the base has %d bytes", res.Body, s.base.Size)
	}
	if got := s.output(alice, "mine", "cat /made /srv/here ~/own; echo $A"); got != "made\nbb\nown\nb\n" {
		t.Errorf("the image has %q", got)
	}
	s.output(alice, "app", "true") // an imported image needs the exec launcher, too
	if p := s.build(alice, "mine", runStep("true")).Want(t, http.StatusConflict); p.Code != "conflict" {
		t.Errorf("a second one of the name: %+v", p)
	}
	next := servertest.Send(t, s.client(alice), "POST", "/v1/images", map[string]any{"name": "next", "from": "mine", "steps": []any{runStep("cat /made >/again")}, "limits": smallSteps})
	next.Want(t, http.StatusOK)
	if got := s.names(alice); !slices.Equal(got, []string{"mine", "next"}) {
		t.Errorf("the images are %v", got)
	}
	s.output(alice, "next", "cat /again")

	sandbox := servertest.Send(t, s.client(alice), "POST", "/v1/sandboxes", map[string]any{"image": "mine"})
	sandbox.Want(t, http.StatusCreated)
	var created struct{ ID string }
	sandbox.Into(t, &created)
	if p := s.delete(alice, "mine").Want(t, http.StatusConflict); p.Code != "conflict" {
		t.Errorf("deleting one in use: %+v", p)
	}
	servertest.Send(t, s.client(alice), "DELETE", "/v1/sandboxes/"+created.ID, nil).Want(t, http.StatusNoContent)
	for _, name := range []string{"mine", "next"} {
		s.delete(alice, name).Want(t, http.StatusNoContent)
		s.delete(alice, name).Want(t, http.StatusNotFound)
	}
	if left := s.left(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestImagesOfOtherTenant: another tenant cannot list, use or delete an image, by any name or id, and has its own names. An
// image of the server that the settings do not list cannot be used, nor be a base.
func TestImagesOfOtherTenant(t *testing.T) {
	s := newImageServer(t)
	s.build(alice, "mine", runStep("echo secret >/secret")).Want(t, http.StatusOK)
	all, err := s.store.List()
	if err != nil {
		t.Fatal(err)
	}
	own := all[slices.IndexFunc(all, func(i *rootfs.Image) bool { return i.ID != s.base.ID })]
	if len(own.Names) != 1 || !strings.HasPrefix(own.Names[0], "tenant-") || !strings.HasSuffix(own.Names[0], ".mine") {
		t.Fatalf("it is stored as %v", own.Names)
	}
	for _, user := range []servertest.User{bob, notAllowed} {
		if got := s.names(user); len(got) > 0 {
			t.Errorf("the other tenant has %v", got)
		}
		for _, ref := range []string{"mine", own.Names[0], own.ID, own.ID[7:], own.ID[7:15], "../names/" + own.Names[0], "hidden", s.base.ID[7:15]} {
			if res := s.sh(user, ref, "cat /secret"); res.Status != http.StatusUnprocessableEntity && res.Status != http.StatusForbidden {
				t.Errorf("using %s: %d %s", ref, res.Status, res.Body)
			}
			res := servertest.Send(t, s.client(bob), "POST", "/v1/images", map[string]any{"name": "x", "from": ref, "steps": []any{runStep("true")}})
			if res.Status != http.StatusUnprocessableEntity && res.Status != http.StatusForbidden {
				t.Errorf("building from %s: %d %s", ref, res.Status, res.Body)
			}
		}
		s.delete(user, "mine").Want(t, http.StatusNotFound)
		if res := s.delete(user, own.Names[0]); res.Status != http.StatusUnprocessableEntity && res.Status != http.StatusNotFound {
			t.Errorf("deleting its name in the store: %d %s", res.Status, res.Body)
		}
	}
	s.build(bob, "mine", runStep("echo other >/secret")).Want(t, http.StatusOK)
	if a, b := s.output(alice, "mine", "cat /secret"), s.output(bob, "mine", "cat /secret"); a != "secret\n" || b != "other\n" {
		t.Errorf("the images have %q and %q", a, b)
	}
	// Equal images are one in the store.
	s.build(bob, "same", runStep("echo secret >/secret")).Want(t, http.StatusOK)
	s.delete(alice, "mine").Want(t, http.StatusNoContent)
	s.output(bob, "same", "cat /secret")
	s.build(oneImage, "a", runStep("true")).Want(t, http.StatusOK)
	if p := s.build(oneImage, "b", runStep("true")).Want(t, http.StatusTooManyRequests); p.Code != "quota" || !strings.Contains(p.Detail, "images") {
		t.Errorf("with the quota used up: %+v", p)
	}
}

// TestFailedImages: a build that fails leaves nothing, and its error has the reason.
func TestFailedImages(t *testing.T) {
	s := newImageServer(t)
	s.output(alice, "app", "true") // zygotes and connections stay
	s.output(smallImages, "app", "true")
	before := harness.TakeInventory()
	for _, tt := range []struct {
		user    servertest.User
		command string
		status  int
		want    string
	}{
		{alice, "echo why; exit 3", http.StatusUnprocessableEntity, "step 2/2: RUN echo why; exit 3: the command ended with exit code 3; the output ends with\n"},
		{alice, "for i in 1 2 3 4 5 6 7 8 9; do dd if=/dev/zero of=/big$i bs=1M count=1 || exit 1; done", http.StatusUnprocessableEntity, "No space left"}, // its disk
		{smallImages, "dd if=/dev/zero of=/big bs=1k count=200", http.StatusRequestEntityTooLarge, "all that the quotas have left"},
		{alice, "cd /; d=$(printf %0120d 0); while mkdir $d && cd $d; do :; done", http.StatusUnprocessableEntity, ""},
	} {
		p := s.build(tt.user, "x", runStep("echo a >/a"), runStep(tt.command)).Want(t, tt.status)
		if !strings.Contains(p.Detail, tt.want) {
			t.Errorf("%s: %+v", tt.command, p)
		}
		if left := s.left(); len(left) > 0 || len(s.names(tt.user)) > 0 {
			t.Errorf("%s: left %v", tt.command, left)
		}
	}
	s.build(smallImages, "x", runStep("dd if=/dev/zero of=/big bs=1k count=50")).Want(t, http.StatusOK)
	if p := s.build(smallImages, "y", runStep("true")).Want(t, http.StatusRequestEntityTooLarge); !strings.Contains(p.Detail, "imageBytes") {
		t.Errorf("without room for the base: %+v", p)
	}
	before.CheckLeaks(t)
}

// TestImageRequests: the API refuses what no build can mean.
func TestImageRequests(t *testing.T) {
	s := newImageServer(t)
	long := strings.Repeat("a", 70_000)
	steps := func(step string) string { return `{"name": "x", "from": "app", "steps": [` + step + `]}` }
	for _, body := range []string{
		steps(``), steps(`{}`), steps(`{"run": ""}`), steps(`{"run": "a", "user": "node"}`), steps(`{"user": "admin"}`), steps(`{"with": ["make"]}`),
		steps(`{"copy": "/etc"}`), steps(`{"run": "a\u0000"}`), steps(`{"run": "` + long + `"}`), steps(`{"dir": "` + long + `"}`), steps(`{"dir": "\u0000"}`),
		steps(`{"env": {"A=B": "c"}}`), steps(`{"env": {"": "c"}}`), steps(`{"env": {"A": "\u0000"}}`), steps(`{"env": {"A": "` + long + `"}}`), steps(`{"env": ["A"]}`),
		steps(`{"run": "true"}` + strings.Repeat(`, {"run": "true"}`, 100)), `{"name": "x"}`, `{"name": "x", "steps": null}`,
		steps(`{"env": {"A": "0123456789"}}` + strings.Repeat(`, {"env": {"A": "$A$A$A$A$A$A$A$A"}}`, 60)),
		`{"name": "../x", "steps": [{"run": "true"}]}`, `{"name": "tenant-/x", "steps": [{"run": "true"}]}`, `{"name": "", "steps": [{"run": "true"}]}`,
		`{"name": "x", "from": "app", "store": "/", "steps": [{"run": "true"}]}`, `{"name": "x", "from": "app", "steps": [{"run": "true"}], "limits": {"memoryBytes": -1}}`,
		`{"name": "x", "from": "app", "steps": [{"run": "true"}], "timeoutMs": 100000000000}`,
	} {
		if p := servertest.Send(t, s.client(alice), "POST", "/v1/images", body).Want(t, http.StatusUnprocessableEntity); p.Code != "invalid" {
			t.Errorf("%.100s: %+v", body, p)
		}
	}
	servertest.Send(t, s.client(alice), "POST", "/v1/images", `{"name": "x", "from": "app", "steps": [{"run": "true"}],
		"permissions": {"network": {"default": "deny", "rules": [{"mode": "allow", "patterns": ["tcp://10.0.0.1:80"]}]}}}`).Want(t, http.StatusForbidden)
	if left := s.left(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// beginBuild begins a build with a step that does not end, and returns when it is performed.
func (s *imageServer) beginBuild(ctx context.Context) (events *bufio.Reader) {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"name": "x", "from": "app", "limits": smallSteps, "steps": []any{runStep("echo a >/a"), runStep("echo begun; sleep 1000")}})
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(ctx, "POST", "http://gaol/v1/images", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	res, err := s.client(alice).Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = res.Body.Close() })
	events = bufio.NewReader(res.Body)
	harness.Expect(s.t, events, `data: {"text":"begun\n"}`)
	return events
}

// TestCanceledImages: a build ends with its request, and with the server, and leaves nothing.
func TestCanceledImages(t *testing.T) {
	s := newImageServer(t)
	s.output(alice, "app", "true")
	before := harness.TakeInventory()
	ctx, cancel := context.WithCancel(t.Context())
	s.beginBuild(ctx)
	if len(s.left()) == 0 {
		t.Error("nothing is in the store during a build")
	}
	cancel()
	harness.WaitFor(t, "the canceled build has ended", func() bool { return len(s.left()) == 0 && len(before.Added()) == 0 })
	events := s.beginBuild(t.Context())
	if err := s.Drain(context.Background()); err != nil {
		t.Error(err)
	}
	harness.Expect(t, events, `"code":"interrupted"`)
	if left := s.left(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestImageFromDefault derives from a copy of the default image. Its Node runs outside of jails only while it is the base's.
func TestImageFromDefault(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	base := harness.DefaultImage(t)
	digits := strings.TrimPrefix(base.ID, "sha256:")
	for _, sub := range []string{"images", "names"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := exec.CommandContext(t.Context(), "cp", "-a", filepath.Dir(base.Root()), filepath.Join(dir, "images")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, name := range base.Names {
		if err := os.Symlink("../images/"+digits, filepath.Join(dir, "names", name)); err != nil {
			t.Fatal(err)
		}
	}
	s := servertest.Start(t, servertest.Options{Store: dir, Settings: func(o *settings.Settings) { o.Tenant.Images, o.Tenant.ImageBytes = 2, 1<<30 }})
	c := s.Client(t, alice)
	for name, command := range map[string]string{"mine": "true", "other": "cd /usr/local/bin && cp node own && echo >>own && mv own node"} {
		servertest.Send(t, c, "POST", "/v1/images", map[string]any{
			"name": name, "steps": []any{runStep("mkdir -p /usr/local/lib/m && echo 'module.exports = 7' >/usr/local/lib/m/index.js"), runStep(command)},
		}).Want(t, http.StatusOK)
	}
	for image, launcher := range map[string]string{"mine": "zygote", "other": "exec", "": "zygote", "default": "zygote"} {
		res := servertest.Send(t, c, "POST", "/v1/run", map[string]any{"image": image, "code": "try { __return(require('/usr/local/lib/m')) } catch { __return(0) }"})
		res.Want(t, http.StatusOK)
		own := image == "mine" || image == "other"
		if !bytes.Contains(res.Body, fmt.Appendf(nil, `"launcher":%q`, launcher)) || bytes.Contains(res.Body, []byte(`"value":7`)) != own {
			t.Errorf("image %q: %s", image, res.Body)
		}
	}
}
