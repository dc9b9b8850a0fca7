package attack

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// No field of a request lets a client choose settings of the operator.
func TestNoSuchFields(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	c := s.Client(t, mallory)
	for _, field := range []string{
		"store", "cgroup", "cgroupParent", "CgroupParent", "launcher", "publish", "ports", "trustNode", "trust-node", "proxy", "proxyNames", "unixSockets", "allowDegraded", "auditDenials",
		"mountUser", "folders", "bindings", "oci", "OCI", "isolations", "runtime", "systemdCgroup", "seccomp", "privileged", "user", "uid", "tenant", "owner", "id", "maxConcurrentRuns", "zygote", "__proto__", "constructor", "IMAGE", "Code",
	} {
		for path, body := range map[string]string{"/v1/sandboxes": `{%q:"x"}`, "/v1/run": `{"code":"1",%q:"x"}`, "/v1/evaluate": `{"code":"1",%q:"x"}`} {
			servertest.Send(t, c, "POST", path, fmt.Sprintf(body, field)).Want(t, http.StatusUnprocessableEntity)
			if field == "IMAGE" || field == "Code" {
				continue
			}
			servertest.Send(t, c, "POST", path, fmt.Sprintf(strings.Replace(body, `%q:"x"`, `"limits":{%q:1}`, 1), field)).Want(t, http.StatusUnprocessableEntity)
		}
		if t.Failed() {
			t.Fatal(field)
		}
	}
}

// Values that no sandbox can have are refused as the client's fault, and nothing is created.
func TestHostileValues(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	c := s.Client(t, mallory)
	huge := strings.Repeat("a", 1<<20)
	env := map[string]string{}
	for n := range 20000 {
		env[fmt.Sprint("V", n)] = "x"
	}
	for _, body := range []map[string]any{
		{"image": "../../../etc"}, {"image": "/"}, {"image": "sha256:00"}, {"image": "0"}, {"image": "default/../default"}, {"image": "default\x00"}, {"image": huge}, {"image": []string{"default"}},
		{"snapshot": "../x"}, {"snapshot": "sha256:00"}, {"snapshot": "0"}, {"snapshot": "none"}, {"snapshot": "tenant-00000000000000000000000000000000.x"}, {"snapshot": "a\x00b"},
		{"nodeModules": "snapshot:"}, {"nodeModules": "snapshot:../x"}, {"nodeModules": "snapshot:none"},
		{"nodeModules": map[string]any{}}, {"nodeModules": map[string]any{"hostPath": ""}}, {"nodeModules": map[string]any{"hostPath": "x", "path": "y"}}, {"nodeModules": map[string]any{"hostPath": 1}}, {"nodeModules": 1},
		{"nodeModules": map[string]any{"hostPath": "snapshot:none", "guestPath": "relative"}}, {"nodeModules": map[string]any{"hostPath": "snapshot:none", "guestPath": "/proc/x"}}, {"nodeModules": map[string]any{"guestPath": "/x"}},
		{"hostname": "a b"}, {"hostname": "a\nb"}, {"hostname": "a\x00b"}, {"hostname": "../x"}, {"hostname": "$(id)"}, {"hostname": huge},
		{"cwd": "relative"}, {"cwd": "/../etc/.."}, {"cwd": "/a\x00b"}, {"cwd": "/proc/self"}, {"cwd": "/dev"}, {"cwd": huge},
		{"files": map[string]string{"relative": "x"}}, {"files": map[string]string{"/a\x00b": "x"}}, {"files": map[string]string{"/proc/self/mem": "x"}}, {"files": map[string]string{"/dev/sda": "x"}},
		{"files": map[string]string{"/sys/kernel/x": "x"}}, {"files": map[string]string{"/usr/libexec/gaol/x": "x"}}, {"files": map[string]string{"/": "x"}}, {"files": map[string]string{"/a": "x", "/a/b": "x"}},
		{"files": map[string]string{"/workspace/x": "a"}, "fileBytes": map[string]string{"/workspace/x": "YQ=="}}, {"fileBytes": map[string]string{"/workspace/x": "not base64"}},
		{"files": map[string]string{"/workspace/x": huge}, "limits": map[string]any{"diskBytes": 4096}},
		{"env": map[string]string{"A=B": "x"}}, {"env": map[string]string{"": "x"}}, {"env": map[string]string{"A\x00": "x"}}, {"env": map[string]string{"A": "x\x00y"}}, {"env": env},
		{"limits": map[string]any{"memoryBytes": -1}}, {"limits": map[string]any{"memoryBytes": 1e30}}, {"limits": map[string]any{"memoryBytes": int64(1) << 62}},
		{"limits": map[string]any{"cpus": -1}}, {"limits": map[string]any{"cpus": 1e300}}, {"limits": map[string]any{"cpus": 1e-300}}, {"limits": map[string]any{"pids": int64(1) << 62}}, {"limits": map[string]any{"files": int64(1) << 62}},
		{"limits": map[string]any{"diskBytes": int64(1) << 62}}, {"limits": map[string]any{"files": int64(1) << 62}}, {"limits": map[string]any{"cpuTimeMs": int64(1) << 62}}, {"limits": map[string]any{"outputBytes": 1 << 30}},
		{"limits": map[string]any{"memoryBytes": 1.5}}, {"limits": map[string]any{"memoryBytes": "1"}}, {"limits": []any{}},
		{"isolation": 1}, {"isolation": []string{"native"}}, {"isolation": map[string]string{"runtime": "/bin/sh"}}, {"isolation": "a\x00b"}, {"isolation": huge},
		{"hostPorts": []int{3000}}, {"hostPorts": []int{0}}, {"hostPorts": []int{-1}}, {"hostPorts": []int{1 << 16}}, {"hostPorts": []string{"22"}}, {"hostPorts": make([]int, 65)}, {"hostPorts": "22"},
		{"idleTimeoutMs": -1}, {"idleTimeoutMs": int64(1) << 62}, {"lifetimeMs": int64(1) << 62},
		{"mounts": []any{map[string]any{"source": "x", "target": "/x", "owner": map[string]int{"uid": 0}}}}, {"mounts": map[string]any{}}, {"mounts": make([]map[string]string, 1000)},
		{"permissions": map[string]any{"network": map[string]any{"default": "allow", "rules": []any{map[string]any{"mode": "allow", "patterns": []string{"tcp://169.254.169.254:80"}}}}}},
		{"permissions": map[string]any{"network": "publish"}}, {"permissions": map[string]any{"root": "allow"}}, {"permissions": "allow"}, {"permissions": 1},
	} {
		r := servertest.Send(t, c, "POST", "/v1/sandboxes", body)
		if r.Status < 400 || r.Status >= 500 || r.Status == http.StatusTooManyRequests && r.Header.Get("Retry-After") != "" {
			text, _ := json.Marshal(body)
			t.Errorf("%.200s: status %d: %.300s\n%s", text, r.Status, r.Body, s.Log)
			continue
		}
		p := r.Want(t, r.Status)
		if strings.Contains(p.Detail, "/var/lib") || strings.Contains(p.Detail, "/sys/fs") || strings.Contains(p.Detail, "/proc/self/fd") {
			t.Errorf("the problem names files of the host: %s", r.Body)
		}
	}
	var list struct{ Sandboxes []any }
	if servertest.Send(t, c, "GET", "/v1/sandboxes", nil).Into(t, &list); len(list.Sandboxes) != 0 {
		t.Errorf("%d sandboxes", len(list.Sandboxes))
	}
}

// Variables of a request change Node in its own guest at most.
func TestEnvironmentStaysInGuest(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	evil := map[string]string{
		"NODE_OPTIONS": "--require=/workspace/evil.cjs", "LD_PRELOAD": "/workspace/evil.so", "LD_LIBRARY_PATH": "/workspace", "LD_AUDIT": "/workspace/evil.so", "NODE_PATH": "/workspace",
		"NODE_EXTRA_CA_CERTS": "/etc/shadow", "NODE_V8_COVERAGE": "/workspace/coverage", "NODE_REDIRECT_WARNINGS": "/workspace/warnings", "OPENSSL_CONF": "/workspace/evil.cnf", "UV_THREADPOOL_SIZE": "1000",
		"GAOL_STORE": "/workspace", "GAOL_SOCKET": "/x", "HTTPS_PROXY": "http://127.0.0.1:1", "PATH": "/workspace", "HOME": "/x", "GLIBC_TUNABLES": "glibc.malloc.check=1",
	}
	const code = `console.log(globalThis.evil, process.env.GAOL_STORE, process.env.PATH, process.execArgv.includes('/workspace/evil.cjs'))`
	run := func(user servertest.User, body map[string]any) (out struct{ Stdout string }) {
		t.Helper()
		r := servertest.Send(t, s.Client(t, user), "POST", "/v1/run", body)
		r.Want(t, http.StatusOK)
		r.Into(t, &out)
		return out
	}
	before := run(alice, map[string]any{"code": code}).Stdout
	for range 3 {
		run(mallory, map[string]any{"code": code, "env": evil, "files": map[string]string{"/workspace/evil.cjs": "globalThis.evil = 1"}})
		for _, user := range []servertest.User{alice, mallory} {
			if after := run(user, map[string]any{"code": code}).Stdout; after != before {
				t.Errorf("%d: %q, before %q", user.UID, after, before)
			}
		}
	}
	if os.Getenv("GAOL_STORE") == "/workspace" || os.Getenv("LD_PRELOAD") != "" {
		t.Error("the server's own environment changed")
	}
}

// Another tenant's sandbox looks like a missing one.
func TestOtherTenantsSandbox(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Tokens: servertest.Tokens(t, "ci")})
	a, m := s.Client(t, alice), s.Client(t, mallory)
	var box struct{ ID string }
	r := servertest.Send(t, a, "POST", "/v1/sandboxes", "{}")
	r.Want(t, http.StatusCreated)
	r.Into(t, &box)
	none := "sb-" + strings.Repeat("a", len(box.ID)-3)
	spellings := []string{box.ID, strings.ToUpper(box.ID), box.ID + "%00", box.ID + "%20", box.ID[:len(box.ID)-1], "%2e%2e%2f" + box.ID, "uid-61002", "*"}
	for _, op := range []struct{ method, path, body string }{
		{"GET", "", ""}, {"DELETE", "", ""}, {"POST", "/renew", ""}, {"POST", "/run", `{"code":"1"}`}, {"POST", "/exec", `{"code":"1"}`}, {"POST", "/command", `{"command":"id"}`}, {"POST", "/evaluate", `{"code":"1"}`},
	} {
		var body any
		if op.body != "" {
			body = op.body
		}
		want := servertest.Send(t, m, op.method, "/v1/sandboxes/"+none+op.path, body)
		want.Want(t, http.StatusNotFound)
		for _, id := range spellings {
			got := servertest.Send(t, m, op.method, "/v1/sandboxes/"+id+op.path, body)
			if got.Status != http.StatusNotFound && got.Status != http.StatusBadRequest {
				t.Errorf("%s %s: status %d: %s", op.method, id, got.Status, got.Body)
			}
			if id == box.ID && strings.ReplaceAll(string(got.Body), box.ID, none) != string(want.Body) {
				t.Errorf("%s: %s differs from %s", op.path, got.Body, want.Body)
			}
		}
	}
	var list struct{ Sandboxes []any }
	if servertest.Send(t, m, "GET", "/v1/sandboxes", nil).Into(t, &list); len(list.Sandboxes) != 0 {
		t.Errorf("%v", list)
	}
	servertest.Send(t, a, "GET", "/v1/sandboxes/"+box.ID, nil).Want(t, http.StatusOK)
}

// Only the kernel knows which user has connected: neither headers nor tokens do on a unix socket.
func TestIdentity(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Tokens: servertest.Tokens(t, "ci")})
	a := s.Client(t, alice)
	servertest.Send(t, a, "POST", "/v1/sandboxes", "{}").Want(t, http.StatusCreated)
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://gaol/v1/sandboxes", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"X-Forwarded-User": "alice", "X-Remote-User": "root", "Authorization": "Bearer " + servertest.Token("ci"), "Tenant": "uid:61002", "Cookie": "tenant=uid:61002"} {
		r.Header.Set(name, value)
	}
	var list struct{ Sandboxes []any }
	if servertest.Do(t, s.Client(t, mallory), r).Into(t, &list); len(list.Sandboxes) != 0 {
		t.Errorf("%v", list)
	}
	// 65534 may be any user of another user namespace.
	servertest.Send(t, s.Client(t, servertest.User{UID: 65534, GID: 65534}), "GET", "/v1/sandboxes", nil).Want(t, http.StatusUnauthorized)
	for _, header := range []string{"", "Bearer", "Bearer ", "Bearer " + servertest.Token("none"), "Basic " + servertest.Token("ci"), "Bearer " + servertest.Token("ci") + "x", "Bearer  " + servertest.Token("ci"), "Bearer " + strings.Repeat("a", 10000)} {
		text := "GET /v1/sandboxes HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + header + "\r\n\r\n"
		if list := servertest.Raw(t, s.DialTCP(t, nil), text, 1); len(list) != 1 || list[0].Want(t, http.StatusUnauthorized).Code != "unauthorized" {
			t.Errorf("%.50q: %d responses", header, len(list))
		}
	}
}

// Descriptors that a client sends with its request are not received.
func TestDescriptorsInRequest(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	null, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	c, err := servertest.Dial(s.Socket, mallory)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	servertest.Send(t, s.Client(t, alice), "GET", "/healthz", nil)
	before := harness.OpenDescriptors()
	request := "GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\n\r\n"
	for range 20 {
		fds := make([]int, 200)
		for i := range fds {
			fds[i] = int(null.Fd())
		}
		if _, _, err := c.(*net.UnixConn).WriteMsgUnix([]byte(request), unix.UnixRights(fds...), nil); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 4096)
		if n, err := c.Read(answer); err != nil || !strings.HasPrefix(string(answer[:n]), "HTTP/1.1 200") {
			t.Fatalf("%q, %v", answer[:n], err)
		}
	}
	if after := harness.OpenDescriptors(); after > before+10 {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

// A user of the group can read nothing of the server's process.
func TestProcOfServer(t *testing.T) {
	servertest.Start(t, servertest.Options{})
	for _, name := range []string{"mem", "environ", "maps", "fd/", "root/etc/hostname", "cwd/", "auxv", "syscall", "io", "map_files/", "exe"} {
		cmd := exec.Command("/bin/sh", "-c", `case "$1" in */) exec ls "$1" 2>&1 ;; esac; exec cat "$1" 2>&1`, "sh", fmt.Sprintf("/proc/%d/%s", os.Getpid(), name))
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(mallory.UID), Gid: uint32(mallory.GID)}}
		out, err := cmd.Output()
		if _, failed := errors.AsType[*exec.ExitError](err); !failed || !strings.Contains(string(out), "ermission denied") {
			t.Errorf("%s: %.100q, %v", name, out, err)
		}
	}
}
