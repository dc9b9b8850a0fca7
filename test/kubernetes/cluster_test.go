package kubernetes

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/test/harness"
)

// TestCluster installs deploy/kubernetes on a node as docs/kubernetes.md says, and replaces, kills and exhausts the worker.
func TestCluster(t *testing.T) {
	if !isolated(t) {
		return
	}
	c := &cluster{startNode(t)}
	before := c.state()
	c.install()
	first := c.ready("")
	second := c.replaced(first, "rollout", "restart", "daemonset/gaol")

	killed := c.begin(second)
	run(t, "", "ctr", "--namespace=k8s.io", "task", "kill", "--signal=SIGKILL", strings.TrimPrefix(second.container().ContainerID, "containerd://"))
	if r := <-killed.result; r.Err == nil {
		t.Errorf("the run of a killed server: %+v", r)
	}
	eventually(t, "the guest of the killed server has ended", func() bool { return errors.Is(unix.Kill(killed.pid, 0), unix.ESRCH) })
	eventually(t, "the kubelet has started the server again", func() bool { return c.worker().container().RestartCount == 1 })
	c.ready("")

	third := c.replaced(second, "delete", "pod", second.Metadata.Name, "--wait=false")
	fourth := c.replaced(third, "set", "resources", "daemonset/gaol", "--containers=gaol", "--limits=memory=1Gi")
	c.exhaust(fourth)
	c.moves(fourth)
	if n := c.worker().container().RestartCount; n != 0 {
		t.Errorf("%d restarts", n)
	}
	if events := c.kubectl("", "get", "events", "--field-selector=reason=FailedPreStopHook", "--output=name"); events != "" {
		t.Error(c.kubectl("", "get", "events"))
	}

	c.kubectl("", "delete", "-k", "deploy/kubernetes", "--wait=false")
	var left []string
	t.Cleanup(func() {
		if len(left) > 0 {
			t.Logf("left: %q", left)
		}
	})
	eventually(t, "nothing is left", func() bool {
		left = nil
		for name := range c.state() {
			if !before[name] {
				left = append(left, name)
			}
		}
		return len(left) == 0
	})
}

// cluster is a node with deploy/kubernetes.
type cluster struct{ *api }

// install runs the commands of docs/kubernetes.md.
func (c *cluster) install() {
	c.t.Helper()
	text := must(os.ReadFile("../../docs/kubernetes.md"))
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), 3)
	links := map[string]string{"deploy": "../../deploy", "gaol-container.tar": os.Getenv(archiveVar)}
	for name, target := range links {
		if err := os.Symlink(must(filepath.Abs(target)), c.path(name)); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := os.Chdir(c.dir); err != nil { // until the process ends
		c.t.Fatal(err)
	}
	for i := range 3 {
		folder := c.path(fmt.Sprint("volume", i))
		c.kubectl(fmt.Sprintf(`{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "volume%d"}, "spec": {"capacity": {"storage": "20Gi"},
			"accessModes": ["ReadWriteOnce"], "local": {"path": %q}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions":
			[{"key": "kubernetes.io/hostname", "operator": "In", "values": ["worker-1"]}]}]}}}}`, i, folder), "apply", "-f", "-")
		if err := os.Mkdir(folder, 0o700); err != nil {
			c.t.Fatal(err)
		}
	}
	for _, b := range blocks {
		out := run(c.t, b[1], "sh", "-es")
		if token := regexp.MustCompile(`(?m)^[A-Z2-7]{50,}$`).FindString(out); token != "" {
			c.write("token", token)
		}
	}
	c.kubectl("", "rollout", "status", "statefulset/gaol-engine", "--timeout=10m")
}

// workerPod is the pod of the DaemonSet.
type workerPod struct {
	Metadata struct{ Name, UID, DeletionTimestamp string }
	Status   struct {
		PodIP             string
		ContainerStatuses []containerStatus
	}
}

type containerStatus struct {
	ContainerID  string
	RestartCount int
	Ready        bool
}

func (p workerPod) container() containerStatus {
	if len(p.Status.ContainerStatuses) == 0 {
		return containerStatus{}
	}
	return p.Status.ContainerStatuses[0]
}

// worker returns the pod of the DaemonSet, if there is one.
func (c *cluster) worker() (p workerPod) {
	c.t.Helper()
	var list struct{ Items []workerPod }
	if err := json.Unmarshal([]byte(c.kubectl("", "get", "pods", "--selector=app.kubernetes.io/name=gaol",
		"--field-selector=status.phase!=Succeeded,status.phase!=Failed", "--output=json")), &list); err != nil {
		c.t.Fatal(err)
	}
	if len(list.Items) > 1 {
		c.t.Errorf("%d workers on a node", len(list.Items))
	}
	for _, p = range list.Items {
	}
	return p
}

// ready waits until another pod than the one with a UID is ready and a node of the fleet, and runs a program there.
func (c *cluster) ready(old string) (p workerPod) {
	c.t.Helper()
	eventually(c.t, "a worker is ready", func() bool {
		p = c.worker()
		return p.Metadata.UID != old && p.container().Ready && p.Metadata.DeletionTimestamp == ""
	})
	c.joined(p)
	return p
}

// joined waits until a worker is a node of the fleet, and runs a program there.
func (c *cluster) joined(p workerPod) {
	c.t.Helper()
	line := regexp.MustCompile(` live +` + p.Status.PodIP + `:8641 `)
	eventually(c.t, "the worker has joined the fleet", func() bool {
		return line.MatchString(c.kubectl("", "exec", p.Metadata.Name, "--container=gaol", "--", "gaol", "fleet", "nodes"))
	})
	if r := c.run(p, "/v1/run", "console.log(6 * 7)"); r.Err != nil || r.Stdout != "42\n" {
		c.t.Errorf("a run: %+v", r)
	}
}

// replaced replaces a pod by kubectl during a run, which must end with its result, and returns the new pod.
func (c *cluster) replaced(p workerPod, kubectl ...string) workerPod {
	c.t.Helper()
	guest := c.begin(p)
	c.kubectl("", kubectl...)
	eventually(c.t, "the worker is drained", func() bool {
		res, err := c.request(p, http.MethodGet, "/readyz", "")
		return err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusServiceUnavailable
	})
	guest.end()
	if r := <-guest.result; r.Err != nil || r.Stdout != "ended\n" {
		c.t.Errorf("%v: a run: %+v", kubectl, r)
	}
	return c.ready(p.Metadata.UID)
}

// result is the response to a run, or to a new sandbox.
type result struct {
	Stdout, Stderr, Cause, ID string
	Err                       error `json:"-"`
}

// request sends a request to a pod.
func (c *cluster) request(p workerPod, method, path, body string) (*http.Response, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must(os.ReadFile(c.path("client.crt"))))
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "gaol.gaol.svc"}}}
	req := must(http.NewRequest(method, "https://"+p.Status.PodIP+":8640"+path, strings.NewReader(body)))
	req.Header.Set("Authorization", "Bearer "+string(must(os.ReadFile(c.path("token")))))
	req.Header.Set("Content-Type", "application/json")
	return client.Do(req)
}

func (c *cluster) run(p workerPod, path, code string) result {
	return c.post(p, path, map[string]any{"code": code, "timeoutMs": 600_000})
}

func (c *cluster) post(p workerPod, path string, body any) (r result) {
	res, err := c.request(p, http.MethodPost, path, string(must(json.Marshal(body))))
	if err != nil {
		return result{Err: err}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", res.Status, text)
	}
	r.Err = errors.Join(err, json.Unmarshal(text, &r))
	return r
}

// untilSignal is code of a guest that ends by SIGUSR2.
const untilSignal = `process.once("SIGUSR2", () => { console.log("ended"); process.exit() }); setInterval(() => {}, 1000); `

// guest is a run in progress.
type guest struct {
	pid    int
	result chan result
}

func (g guest) end() { _ = unix.Kill(g.pid, unix.SIGUSR2) } // it may have ended

// begin begins a run, and returns when it waits.
func (c *cluster) begin(p workerPod) guest {
	c.t.Helper()
	g := guest{result: make(chan result, 1)}
	go func() { g.result <- c.run(p, "/v1/run", untilSignal) }()
	eventually(c.t, "a guest waits in a cgroup of the pod", func() bool {
		for _, g.pid = range c.guests(p) {
			return true
		}
		if len(g.result) > 0 {
			c.t.Fatalf("%+v", <-g.result)
		}
		return false
	})
	return g
}

// guests returns the processes in sandboxes of a pod that handle SIGUSR2.
func (c *cluster) guests(p workerPod) (pids []int) {
	group := filepath.Join(hierarchies()[0], groupOf(c.dir), "kubepods/burstable", "pod"+p.Metadata.UID)
	for _, file := range find(group, "-path", "*/tenants/*", "-name", "cgroup.procs") {
		for _, pid := range harness.Lines(file) {
			if caught, _ := strconv.ParseUint(harness.ProcessStatus(pid)["SigCgt"], 16, 64); caught&(1<<(unix.SIGUSR2-1)) != 0 {
				pids = append(pids, must(strconv.Atoi(pid)))
			}
		}
	}
	return pids
}

// exhaust begins runs that need more memory than a pod with 1 GiB has. Guests are killed, and the rest succeeds.
func (c *cluster) exhaust(p workerPod) {
	c.t.Helper()
	const n = 6
	body := map[string]any{"code": untilSignal + "globalThis.held = Buffer.alloc(400 << 20, 1)", "timeoutMs": 600_000, "limits": map[string]any{"memoryBytes": 512 << 20}}
	results := make(chan result, n)
	for range n {
		go func() { results <- c.post(p, "/v1/run", body) }()
	}
	eventually(c.t, "a guest is killed", func() bool { return len(results) > 0 })
	eventually(c.t, "all guests have ended", func() bool {
		for _, pid := range c.guests(p) {
			guest{pid: pid}.end()
		}
		return len(results) == n
	})
	causes := map[string]int{}
	for range n {
		r := <-results
		if causes[r.Cause]++; r.Err != nil {
			c.t.Errorf("%+v", r)
		}
	}
	if c.t.Log(causes); causes["memory"] == 0 || causes["memory"]+causes[""] != n {
		c.t.Errorf("causes %v, want memory", causes)
	}
}

// moves tests that sandboxes on disk move from a worker that is deleted to one that pretends to be on another node. They are more than
// the loop devices that a container finds when it starts.
func (c *cluster) moves(p workerPod) {
	c.t.Helper()
	var pod map[string]any
	if err := json.Unmarshal([]byte(c.template("daemonset/gaol", "gaol")), &pod); err != nil {
		c.t.Fatal(err)
	}
	spec := pod["spec"].(map[string]any)
	for _, v := range spec["volumes"].([]any) {
		if path, ok := v.(map[string]any)["hostPath"].(map[string]any); ok {
			path["path"] = fmt.Sprint(path["path"], "-other")
		}
	}
	for _, container := range spec["containers"].([]any) {
		delete(container.(map[string]any), "resources")
	}
	c.kubectl(string(must(json.Marshal(pod))), "create", "-f", "-")
	c.kubectl("", "wait", "--for=condition=Ready", "pod/tried", "--timeout=10m")
	var other workerPod
	if err := json.Unmarshal([]byte(c.kubectl("", "get", "pod", "tried", "--output=json")), &other); err != nil {
		c.t.Fatal(err)
	}
	c.joined(other)
	var sandboxes []string
	for i := range 10 {
		r := c.post(p, "/v1/sandboxes", map[string]any{"limits": map[string]any{"diskBytes": 1 << 30}})
		path := "/v1/sandboxes/" + r.ID
		if w := c.run(p, path+"/run", fmt.Sprintf(`process.getBuiltinModule("fs").writeFileSync("kept", "%d")`, i)); r.Err != nil || w.Err != nil || w.Stderr != "" {
			c.t.Fatalf("sandbox %d: %+v, %+v", i, r, w)
		}
		sandboxes = append(sandboxes, path)
	}
	c.kubectl("", "delete", "pod", p.Metadata.Name)
	for i, path := range sandboxes {
		if r := c.run(other, path+"/run", `console.log(process.getBuiltinModule("fs").readFileSync("kept", "utf8"))`); r.Err != nil || r.Stdout != fmt.Sprintln(i) {
			c.t.Errorf("sandbox %d: %+v", i, r)
		}
		if res, err := c.request(other, http.MethodDelete, path, ""); err != nil || res.Body.Close() != nil || res.StatusCode >= 300 {
			c.t.Errorf("sandbox %d: %v, %v", i, res, err)
		}
	}
}
