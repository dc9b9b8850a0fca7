package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/test/harness"
)

// dirVar names the folder of test/kubernetes/build. Without it, the tests with a cluster are skipped.
const dirVar = "GAOL_TEST_KUBERNETES"

const version = "v1.36.3" // of test/kubernetes/build

// insideVar is set in the process that isolated starts, to a folder that outlives its mounts.
const insideVar = "GAOL_TEST_KUBERNETES_INSIDE"

// nodeIP is the address of the machine in its network namespace, which leads nowhere.
const nodeIP = "10.88.0.1"

// isolated runs the test in a new process, in namespaces that end with it. It returns true there.
func isolated(t *testing.T) bool {
	t.Helper()
	if os.Getenv(dirVar) == "" {
		t.Skip("make test-kubernetes runs this test")
	}
	if dir := os.Getenv(insideVar); dir != "" {
		run(t, isolateScript, "sh", "-es", dir)
		return true
	}
	dir := t.TempDir()
	makeGroups(t, dir)
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=30m")
	cmd.Env = append(os.Environ(), insideVar+"="+dir)
	namespaces := unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: uintptr(namespaces), Pdeathsig: unix.SIGKILL}
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
	for _, file := range harness.Glob("/sys/block/loop*/loop/backing_file") {
		if text, err := os.ReadFile(file); err == nil && bytes.HasPrefix(text, []byte(dir)) {
			t.Errorf("%s: %s", file, text)
		}
	}
	return false
}

// isolateScript hides the machine's folders from the programs of a node, and the settings of the kernel that the kubelet changes.
const isolateScript = `
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
for folder in lib log; do
	mkdir "$1/$folder"
	mount --bind "$1/$folder" /var/$folder
done
for file in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
	cat /proc/sys/$file >"/run/${file##*/}"
	mount --bind "/run/${file##*/}" /proc/sys/$file
done
ip link set lo up
ip link add node0 type bridge
ip address add ` + nodeIP + `/24 dev node0
ip link set node0 up
ip route add default dev node0`

// hierarchies returns the mounts of cgroups.
func hierarchies() []string {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.procs"); err == nil { // v2
		return []string{"/sys/fs/cgroup"}
	}
	dirs := harness.Glob("/sys/fs/cgroup/*/cgroup.procs")
	for i, file := range dirs {
		dirs[i] = filepath.Dir(file)
	}
	return dirs
}

// groupOf returns the name of the cgroup of all pods of the test, whose folder is dir.
func groupOf(dir string) string { return "gaol-kubernetes" + strings.ReplaceAll(dir, "/", "-") }

// makeGroups makes the cgroup of all pods in each hierarchy until the test ends.
func makeGroups(t *testing.T, dir string) {
	t.Helper()
	for _, h := range hierarchies() {
		group := filepath.Join(h, groupOf(dir))
		if err := os.Mkdir(group, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			harness.WaitFor(t, "no cgroup is left", func() bool {
				_, _ = try("", "find", group, "-depth", "-type", "d", "-exec", "rmdir", "{}", "+")
				_, err := os.Stat(group)
				return err != nil
			})
		})
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // v1: without them it can have no process
			if text, err := os.ReadFile(filepath.Join(h, file)); err == nil {
				err = os.WriteFile(filepath.Join(group, file), text, 0)
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// run runs a command, which must succeed, and returns its output.
func run(t *testing.T, input string, name string, args ...string) string {
	t.Helper()
	out, err := try(input, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func try(input, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", cmd.Args, err, &stderr)
	}
	return stdout.String(), nil
}

// api is an API server with its etcd.
type api struct {
	t   *testing.T
	dir string // of its files
	bin string // of test/kubernetes/build
}

const adminToken = "the-token-of-the-test"

// startAPI starts an API server on a loopback address.
func startAPI(t *testing.T) *api {
	t.Helper()
	a := &api{t, os.Getenv(insideVar), os.Getenv(dirVar)}
	a.write("api-tokens", adminToken+`,admin,admin,"system:masters"`+"\n")
	a.write("kubeconfig", `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443", "insecure-skip-tls-verify": true}}],
		"users": [{"name": "u", "user": {"token": "`+adminToken+`"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "gaol"}}]}`)
	run(t, "", "openssl", "genrsa", "-out", a.path("sa.key"), "2048")
	a.start(filepath.Join(a.bin, "root/usr/bin/etcd"), "--data-dir", a.path("etcd"), "--unsafe-no-fsync")
	a.start(a.program("kube-apiserver"), "--etcd-servers=http://127.0.0.1:2379", "--bind-address=127.0.0.1", "--advertise-address="+nodeIP, "--cert-dir="+a.path("certs"),
		"--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none", "--token-auth-file="+a.path("api-tokens"), "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+a.path("sa.key"), "--service-account-signing-key-file="+a.path("sa.key"),
		"--allow-privileged=true", "--kubelet-preferred-address-types=InternalIP", "--profiling=false")
	harness.WaitFor(t, "the API server is ready", func() bool {
		_, err := try("", a.program("kubectl"), "--kubeconfig", a.path("kubeconfig"), "get", "--raw", "/readyz")
		return err == nil
	})
	return a
}

func (a *api) path(name string) string    { return filepath.Join(a.dir, name) }
func (a *api) program(name string) string { return filepath.Join(a.bin, version, name) }

func (a *api) write(name, text string) {
	a.t.Helper()
	if err := os.WriteFile(a.path(name), []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// start starts a program, which ends with the test.
func (a *api) start(program string, args ...string) {
	a.t.Helper()
	log, err := os.Create(a.path(filepath.Base(program) + ".log"))
	if err != nil {
		a.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); a.t.Failed() && err == nil {
			a.t.Logf("%s:\n%s", program, text[max(0, len(text)-6000):])
		}
	})
}

// kubectl runs kubectl, which must succeed.
func (a *api) kubectl(input string, args ...string) string {
	a.t.Helper()
	return run(a.t, input, a.program("kubectl"), append([]string{"--kubeconfig", a.path("kubeconfig")}, args...)...)
}

// template returns the pod of a controller, in a namespace.
func (a *api) template(controller, namespace string) string {
	a.t.Helper()
	var o struct {
		Spec struct {
			Template struct {
				Spec map[string]any `json:"spec"`
			} `json:"template"`
			Claims []struct {
				Metadata struct {
					Name string `json:"name"`
				} `json:"metadata"`
			} `json:"volumeClaimTemplates"`
		} `json:"spec"`
	}
	if err := json.Unmarshal([]byte(a.kubectl("", "get", controller, "-o", "json")), &o); err != nil {
		a.t.Fatal(err)
	}
	spec := o.Spec.Template.Spec
	for _, c := range o.Spec.Claims { // as the controller does
		volumes, _ := spec["volumes"].([]any)
		spec["volumes"] = append(volumes, map[string]any{"name": c.Metadata.Name, "persistentVolumeClaim": map[string]any{"claimName": c.Metadata.Name}})
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "tried", "namespace": namespace}, "spec": spec})
	if err != nil {
		a.t.Fatal(err)
	}
	return string(text)
}

// TestApply: an API server accepts all objects and their pods, and the engine's also where Pod Security is strict.
func TestApply(t *testing.T) {
	if !isolated(t) {
		return
	}
	a := startAPI(t)
	objects := a.kubectl("", "kustomize", folder)
	a.kubectl("", "apply", "-f", folder+"/namespace.yaml")
	dry := a.kubectl(objects, "apply", "--dry-run=server", "-f", "-")
	for _, want := range []string{"statefulset.apps/gaol-engine", "daemonset.apps/gaol ", "poddisruptionbudget.policy/gaol-engine", "networkpolicy.networking.k8s.io/gaol-engine"} {
		if !strings.Contains(dry, want) {
			t.Errorf("%q is missing:\n%s", want, dry)
		}
	}
	a.kubectl(objects, "apply", "-f", "-")
	a.kubectl("", "create", "namespace", "strict")
	a.kubectl("", "label", "namespace", "strict", "pod-security.kubernetes.io/enforce=restricted")
	for _, namespace := range []string{"gaol", "strict"} {
		a.kubectl("", "create", "serviceaccount", "default", "--namespace", namespace) // a controller's task
	}
	for _, test := range []struct{ controller, namespace, refused string }{
		{"daemonset/gaol", "gaol", ""},
		{"daemonset/gaol", "strict", `violates PodSecurity "restricted:latest"`},
		{"statefulset/gaol-engine", "gaol", ""},
		{"statefulset/gaol-engine", "strict", ""},
	} {
		pod := a.template(test.controller, test.namespace)
		_, err := try(pod, a.program("kubectl"), "--kubeconfig", a.path("kubeconfig"), "create", "--dry-run=server", "-f", "-")
		if (err != nil) != (test.refused != "") || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("a pod of %s in namespace %s: %v, want %q", test.controller, test.namespace, err, test.refused)
		}
	}
}
