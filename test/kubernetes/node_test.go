package kubernetes

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/miekg/dns"

	"gaol/test/harness"
)

// startNode starts an API server, the controllers, and a node named worker-1 without pods.
func startNode(t *testing.T) *api {
	t.Helper()
	a := startAPI(t)
	t.Setenv("KUBECONFIG", a.path("kubeconfig"))
	t.Setenv("PATH", strings.Join([]string{filepath.Dir(a.program("kubectl")), filepath.Dir(os.Getenv(archiveVar)), a.debian("bin"), a.debian("sbin"), os.Getenv("PATH")}, ":"))
	a.serveDNS()
	a.start(a.program("kube-controller-manager"), "--kubeconfig="+a.path("kubeconfig"), "--leader-elect=false", "--bind-address=127.0.0.1", "--cert-dir="+a.path("certs"))
	a.start(a.program("kube-scheduler"), "--kubeconfig="+a.path("kubeconfig"), "--leader-elect=false", "--bind-address=127.0.0.1")
	a.write("10-pods.conflist", `{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "pods0", "isGateway": true,
		"ipam": {"type": "host-local", "ranges": [[{"subnet": "10.89.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}`)
	a.write("containerd.toml", fmt.Sprintf(`
version = 2
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = %q
restrict_oom_score_adj = true # the machine may lack CAP_SYS_RESOURCE
cni = {bin_dir = %q, conf_dir = %q}
`, pauseImage, a.debian("lib/cni"), a.dir))
	a.start(a.debian("bin/containerd"), "--config", a.path("containerd.toml"))
	eventually(t, "containerd is ready", func() bool { _, err := try("", "ctr", "version"); return err == nil })
	a.importPause()
	a.write("kubelet", fmt.Sprintf(`{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": %q,
		"authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}}, "authorization": {"mode": "AlwaysAllow"},
		"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock", "cgroupDriver": "cgroupfs", "cgroupRoot": "/%s", "failCgroupV1": false,
		"clusterDNS": [%[1]q], "clusterDomain": "cluster.local", "resolvConf": "", "volumePluginDir": "/run/volume-plugins",
		"imageGCHighThresholdPercent": 100, "evictionHard": {"memory.available": "0%%", "nodefs.available": "0%%", "imagefs.available": "0%%"}}`, nodeIP, groupOf(a.dir)))
	a.start(a.program("kubelet"), "--config="+a.path("kubelet"), "--kubeconfig="+a.path("kubeconfig"), "--hostname-override=worker-1", "--node-ip="+nodeIP)
	eventually(t, "the node is ready", func() bool {
		_, err := try("", "kubectl", "wait", "--for=condition=Ready", "node/worker-1", "--timeout=10s")
		return err == nil
	})
	return a
}

// debian returns a path in the packages of test/kubernetes/build.
func (a *api) debian(path string) string { return filepath.Join(a.bin, "root/usr", path) }

// pauseImage is the image of the containers that hold the namespaces of pods.
const pauseImage = "docker.io/library/pause:test"

// importPause imports the image of the archive with another command.
func (a *api) importPause() {
	a.t.Helper()
	unpacked, archive := a.path("layout"), a.path("pause.tar")
	run(a.t, "", "sh", "-ec", `mkdir "$1" && tar -xf "$2" -C "$1"`, "sh", unpacked, os.Getenv(archiveVar))
	index := must(layout.ImageIndexFromPath(unpacked))
	image := must(index.Image(must(index.IndexManifest()).Manifests[0].Digest))
	config := must(image.ConfigFile()).Config
	config.Entrypoint = []string{"/usr/bin/busybox", "sleep", "1000000"}
	if err := tarball.WriteToFile(archive, name.MustParseReference(pauseImage), must(mutate.Config(image, config))); err != nil {
		a.t.Fatal(err)
	}
	run(a.t, "", "ctr", "--namespace=k8s.io", "image", "import", archive)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// serveDNS resolves names of the engine's headless service, by its endpoints.
func (a *api) serveDNS() {
	a.t.Helper()
	conn, err := net.ListenPacket("udp", nodeIP+":53")
	if err != nil {
		a.t.Fatal(err)
	}
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetRcode(q, dns.RcodeNameError)
		host, _ := strings.CutSuffix(q.Question[0].Name, ".gaol-engine.gaol.svc.cluster.local.")
		if address, err := a.endpoint(host); err != nil {
			m.Rcode = dns.RcodeServerFailure
		} else if address != nil {
			if m.Rcode = dns.RcodeSuccess; q.Question[0].Qtype == dns.TypeA {
				m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}, A: address}}
			}
		}
		_ = w.WriteMsg(m) // the client repeats the question
	})}
	go func() { _ = server.ActivateAndServe() }() // until Shutdown
	a.t.Cleanup(func() { _ = server.Shutdown() })
}

// endpoint returns the address of a pod of the engine; nil if there is none.
func (a *api) endpoint(host string) (net.IP, error) {
	out, err := try("", "kubectl", "get", "endpointslices", "--selector=kubernetes.io/service-name=gaol-engine",
		"--output=jsonpath={range .items[*].endpoints[*]}{.hostname}={.addresses[0]} {end}")
	for _, field := range strings.Fields(out) {
		if name, address, _ := strings.Cut(field, "="); name == host {
			return net.ParseIP(address), nil
		}
	}
	return nil, err
}

// state lists what pods may leave: mounts, processes, cgroups, network interfaces, and reserved user ids.
func (a *api) state() map[string]bool {
	list := map[string]bool{}
	for _, line := range harness.Lines("/proc/self/mountinfo") {
		list["mount "+strings.Fields(line)[4]] = true
	}
	for _, dir := range harness.Glob("/proc/[0-9]*") {
		if status := harness.ProcessStatus(filepath.Base(dir)); !strings.HasPrefix(status["State"], "Z") {
			list["process "+status["Pid"]+" "+status["Name"]] = true
		}
	}
	for _, h := range hierarchies() {
		for _, group := range find(filepath.Join(h, groupOf(a.dir)), "-type", "d", "-name", "pod*") {
			list["cgroup "+group] = true
		}
	}
	for _, file := range harness.Glob("/sys/class/net/veth*", "/run/netns/*", "/run/gaol*/jails/*", "/var/lib/gaol*/tmp/*") {
		list[file] = true
	}
	return list
}

// find lists files below a folder from which files may vanish meanwhile.
func find(dir string, conditions ...string) []string {
	out, _ := exec.Command("find", append([]string{dir}, conditions...)...).Output()
	return strings.Fields(string(out))
}

// eventually waits until a condition holds, for longer than tests of one process.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after ten minutes still not: %s", what)
		}
	}
}
