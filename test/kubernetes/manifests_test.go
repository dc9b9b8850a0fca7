package kubernetes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pb33f/go-yaml"

	"gaol/cmd/gaol/server/fleet"
	"gaol/cmd/gaol/server/settings"
	"gaol/rootfs"
	"gaol/runtime/client"
	"gaol/test/harness"
)

const folder = "../../deploy/kubernetes"

func TestMain(m *testing.M) {
	code := m.Run()
	if err := harness.RemoveBinary(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// object contains the fields of Kubernetes objects that the tests read.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Replicas int
		Template struct{ Spec pod }
		Ingress  []struct{ Ports []struct{ Port int } }
	}
}

type pod struct {
	TerminationGracePeriodSeconds int
	AutomountServiceAccountToken  *bool
	InitContainers, Containers    []container
	Volumes                       []struct {
		Name     string
		HostPath struct{ Path string }
	}
}

type container struct {
	Command, Args []string
	Env           []struct{ Name, Value string }
	Ports         []struct{ ContainerPort int }
	Lifecycle     struct {
		PreStop struct{ Exec struct{ Command []string } }
	}
	VolumeMounts []struct{ Name, MountPath string }
}

// read returns the objects of all files by kind and name.
func read(t *testing.T) map[string]object {
	t.Helper()
	var list struct{ Resources []string }
	if err := yaml.Unmarshal(readFile(t, "kustomization.yaml"), &list); err != nil {
		t.Fatal(err)
	}
	if want := len(harness.Glob(folder+"/*.yaml")) - 1; len(list.Resources) != want {
		t.Errorf("kustomization.yaml lists %v, want all %d files", list.Resources, want)
	}
	objects := map[string]object{}
	for _, name := range list.Resources {
		d := yaml.NewDecoder(bytes.NewReader(readFile(t, name)))
		for {
			var fields map[string]any
			if err := d.Decode(&fields); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var o object
			text, err := json.Marshal(fields) // whose names are found in any case
			if err = errors.Join(err, json.Unmarshal(text, &o)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			objects[o.Kind+" "+o.Metadata.Name] = o
		}
	}
	return objects
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func workers(t *testing.T) pod { return read(t)["DaemonSet gaol"].Spec.Template.Spec }

// TestCommands: gaol accepts the flags of all commands.
func TestCommands(t *testing.T) {
	p := workers(t)
	serve := p.Containers[0]
	cmd := exec.Command(harness.Gaol(t), append(slices.Clone(serve.Args), "--print-unit=service")...)
	for i, arg := range cmd.Args {
		cmd.Args[i] = strings.ReplaceAll(arg, "$(POD_IP)", "10.0.0.1")
	}
	for _, e := range serve.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %v\n%s", serve.Args, err, out)
	}
	for _, command := range [][]string{p.InitContainers[0].Command, serve.Lifecycle.PreStop.Exec.Command} {
		script := filepath.Join(folder, filepath.Base(command[len(command)-1]))
		if out, err := exec.Command("sh", "-n", script).CombinedOutput(); err != nil || !slices.Equal(command[:2], []string{"/usr/bin/busybox", "sh"}) {
			t.Errorf("%v: %v\n%s", command, err, out)
		}
	}
}

// TestImageScript: the script gives a store the image and its names once, and leaves others.
func TestImageScript(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	script := strings.NewReplacer("/usr/lib/gaol/store", from, "/var/lib/gaol", to).Replace(string(readFile(t, "image.sh")))
	link := func(dir, name, image string) error {
		return os.Symlink("../images/"+image, filepath.Join(dir, "names", name))
	}
	for dir, image := range map[string]string{from: "new", to: "old"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "images", image), 0o755), os.Mkdir(filepath.Join(dir, "names"), 0o755), link(dir, "default", image)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(link(to, "kept", "old"), os.WriteFile(filepath.Join(from, "images/new/file"), []byte("1"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for name, want := range map[string]string{"names/default": "images/new", "names/kept": "images/old", "images/new/file": "images/new/file"} {
			if got, err := filepath.EvalSymlinks(filepath.Join(to, name)); err != nil || got != filepath.Join(to, want) {
				t.Errorf("%s: %s, %v, want %s", name, got, err, want)
			}
		}
		if left := harness.Glob(to + "/tmp/*"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// TestTimes: the kubelet kills a worker only after the drain and the runs.
func TestTimes(t *testing.T) {
	s, err := settings.Read(filepath.Join(folder, "server.json"), settings.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	p := workers(t)
	seconds := regexp.MustCompile(`seq (\d+)`).FindStringSubmatch(string(readFile(t, "drain.sh")))
	if seconds == nil {
		t.Fatal("drain.sh waits without a limit")
	}
	wait, err := time.ParseDuration(seconds[1] + "s")
	if err != nil {
		t.Fatal(err)
	}
	want := wait + time.Duration(s.DrainMs)*time.Millisecond + 40*time.Second
	if got := time.Duration(p.TerminationGracePeriodSeconds) * time.Second; got < want {
		t.Errorf("terminationGracePeriodSeconds is %v, want at least %v", got, want)
	}
}

// TestAddresses: the objects name the same servers, ports and folders as gaol and nats.conf.
func TestAddresses(t *testing.T) {
	objects := read(t)
	engine, p := objects["StatefulSet gaol-engine"], workers(t)
	config, urls := string(readFile(t, "nats.conf")), ""
	for _, e := range p.Containers[0].Env {
		if e.Name == "GAOL_FLEET_ENGINE" {
			urls = e.Value
		}
	}
	if n := len(strings.Split(urls, ",")); engine.Spec.Replicas != 3 || n != 3 {
		t.Errorf("%d servers, %d URLs in %s", engine.Spec.Replicas, n, urls)
	}
	for i := range engine.Spec.Replicas {
		host := fmt.Sprintf("gaol-engine-%d.gaol-engine", i)
		if !strings.Contains(urls, "tls://$(ENGINE_TOKEN)@"+host+":4222") || !strings.Contains(config, "tls://"+host+":6222") {
			t.Errorf("%s is missing in %s or in nats.conf", host, urls)
		}
	}
	for _, port := range engine.Spec.Template.Spec.Containers[0].Ports {
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^ *(http_)?port: %d( |$)`, port.ContainerPort)).MatchString(config) {
			t.Errorf("nats.conf lacks port %d", port.ContainerPort)
		}
	}
	policies := fmt.Sprint(objects["NetworkPolicy gaol"].Spec.Ingress, objects["NetworkPolicy gaol-engine"].Spec.Ingress)
	if want := fmt.Sprintf("[{[{8640}]} {[{%s}]}] [{[{4222}]} {[{6222}]}]", fleet.DefaultPort); policies != want {
		t.Errorf("ports of the network policies: %s, want %s", policies, want)
	}
	args := strings.Join(p.Containers[0].Args, "\n")
	if !strings.Contains(args, "--fleet-address=$(POD_IP):"+fleet.DefaultPort) || !strings.Contains(args, "--listen=:8640") {
		t.Error(args)
	}
	hostPaths := map[string]string{}
	for _, v := range p.Volumes {
		for _, m := range p.Containers[0].VolumeMounts {
			if m.Name == v.Name && v.HostPath.Path != "" {
				hostPaths[m.MountPath] = v.HostPath.Path
			}
		}
	}
	want := map[string]string{rootfs.DefaultDir: rootfs.DefaultDir, path.Dir(client.DefaultSocket): path.Dir(client.DefaultSocket)}
	if got, _ := json.Marshal(hostPaths); fmt.Sprint(hostPaths) != fmt.Sprint(want) {
		t.Errorf("folders of the node: %s, want %v", got, want)
	}
}

// TestRights: no pod gets a token of the API server.
func TestRights(t *testing.T) {
	for name, o := range read(t) {
		if len(o.Spec.Template.Spec.Containers) == 0 {
			continue
		}
		if mount := o.Spec.Template.Spec.AutomountServiceAccountToken; mount == nil || *mount {
			t.Errorf("%s mounts the token of its service account", name)
		}
	}
}
