package escape

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gaol/rootfs"
	"gaol/runtime"
	"gaol/test/harness"
)

// survey is what testdata/survey.mjs reports.
type survey struct {
	Status, Files, Dirs, Links map[string]string
	FDs                        [][2]any // number, target
	Pids                       []int
	Pid                        int
	Env                        map[string]string
	Hostname                   string
	User                       map[string]any
	IDs                        []int
	Interfaces                 string // names, or an error code
}

const secret = "of-the-host-7c1d0a"

// Paths that a guest may not read, and the content that it reads instead.
var (
	hidden = []string{ // empty, or does not exist
		"/proc/cmdline", "/proc/diskstats", "/proc/interrupts", "/proc/keys", "/proc/modules", "/proc/partitions",
		"/proc/swaps", "/proc/timer_list", "/proc/cgroups", "/proc/config.gz", "/proc/iomem", "/proc/ioports", "/proc/kallsyms",
		"/proc/net/tcp6", "/proc/net/unix", "/proc/net/packet",
		"/proc/kmsg", "/proc/slabinfo", "/proc/vmallocinfo", "/proc/pagetypeinfo", "/proc/kpagecount", "/proc/kpageflags",
	}
	refused = []string{ // EACCES, or does not exist
		"/proc/self/stack", "/proc/1/environ", "/proc/1/maps", "/proc/1/mem", "/proc/1/auxv", "/proc/1/io", "/proc/1/fd/0", "/proc/1/fd/3",
	}
	readable = []string{ // readable, without names of the host
		"/proc/self/mountinfo", "/proc/self/mounts", "/proc/self/mountstats", "/proc/self/cgroup", "/proc/self/maps",
		"/proc/self/environ", "/proc/self/limits", "/proc/1/mountinfo", "/proc/1/cmdline", "/proc/1/cgroup",
		"/proc/net/dev", "/proc/net/route", "/proc/sys/kernel/hostname", "/proc/sys/kernel/domainname",
		"/etc/hostname", "/etc/hosts", "/etc/resolv.conf", "/etc/passwd",
	}
	folders   = []string{"/", "/dev", "/dev/pts", "/dev/shm", "/proc/acpi", "/proc/1/fd", "/proc/1/root", "/proc/1/cwd", "/sys", "/run", programs, "/root", "/home", "/tmp", "/workspace"}
	linkPaths = []string{"/proc/self/cwd", "/proc/self/root", "/proc/self/exe", "/proc/1/exe", "/proc/1/cwd", "/proc/1/root"}
	spaces    = []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"}
)

func takeSurvey(t *testing.T) survey {
	t.Helper()
	t.Setenv("GAOL_TEST_SECRET", secret)
	code, err := os.ReadFile("testdata/survey.mjs")
	if err != nil {
		t.Fatal(err)
	}
	links := slices.Clone(linkPaths)
	for _, s := range spaces {
		links = append(links, "/proc/self/ns/"+s)
	}
	asked, err := json.Marshal(map[string][]string{"files": slices.Concat(hidden, refused, readable), "dirs": folders, "links": links})
	if err != nil {
		t.Fatal(err)
	}
	rt := harness.Create(t, runtime.Options{})
	var s survey
	res := harness.Run(t, rt, string(code), runtime.RunOptions{Args: []string{string(asked)}})
	if err := res.Decode(&s); err != nil {
		t.Fatalf("%v: %s", err, res.Stderr)
	}
	return s
}

// A guest sees nothing of the host. Everything that it can see is as expected.
func TestInside(t *testing.T) {
	s := takeSurvey(t)
	for name, check := range map[string]func(*testing.T, survey){
		"process status": checkStatus, "hidden files": checkHidden, "host names": checkNames, "processes": checkProcesses,
		"network": checkNetwork, "folders": checkFolders, "descriptors": checkDescriptors, "limits": checkLimits,
	} {
		t.Run(name, func(t *testing.T) { check(t, s) })
	}
	for _, tc := range []struct {
		name      string
		got, want any
	}{
		{"environment", s.Env, map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin:/home/node/.local/bin", "HOME": "/home/node", "USER": "node", "LANG": "C.UTF-8", "TMPDIR": "/tmp"}},
		{"host name", s.Hostname + " " + s.Files["/proc/sys/kernel/hostname"], "secure-exec secure-exec\n"},
		{"user", s.User, map[string]any{"uid": 1000., "gid": 1000., "username": "node", "homedir": "/home/node", "shell": "/bin/sh"}},
		{"ids and groups", slices.Compact(s.IDs), []int{1000}},
		{"domain name", s.Files["/proc/sys/kernel/domainname"], "(none)\n"},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// checkStatus checks capabilities, filter and no_new_privs of all processes and threads of
// a run.
func checkStatus(t *testing.T, s survey) {
	if len(s.Status) < 3+4 { // a forked Node has fewer threads than a started one
		t.Errorf("only %d processes and threads are looked at", len(s.Status))
	}
	for who, text := range s.Status {
		if !strings.HasPrefix(text, "Name:") && strings.HasPrefix(who, "thread") {
			continue // it has ended
		}
		fields := map[string]string{}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(line, ":")
			fields[name] = strings.Join(strings.Fields(value), " ")
		}
		id := "1000 1000 1000 1000"
		if who == "pid 1" {
			id = "0 0 0 0" // an id of the jail's own user namespace
		}
		const none = "0000000000000000"
		for name, want := range map[string]string{
			"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none,
			"NoNewPrivs": "1", "Seccomp": "2", "Uid": id, "Gid": id, "Groups": "", "TracerPid": "0",
		} {
			if got, ok := fields[name]; !ok || got != want {
				t.Errorf("%s: %s is %q, want %q", who, name, got, want)
			}
		}
	}
}

func checkHidden(t *testing.T, s survey) {
	for _, path := range hidden {
		got := s.Files[path]
		if strings.HasPrefix(path, "/proc/net/") {
			got = got[strings.Index(got, "\n")+1:] // without the heading
		}
		if path == "/proc/net/unix" && harness.InGVisor() { // which lists all sockets of its kernel, here a zygote's: they have no names
			got = regexp.MustCompile(`(?m)^0{16}: \w+ 0+ 0+ \w+ \w+ +\d+\n`).ReplaceAllString(got, "")
		}
		if got != "" && got != "ENOENT" {
			t.Errorf("%s shows %.100q", path, got)
		}
	}
	for _, path := range refused {
		if got := s.Files[path]; got != "EACCES" && got != "ENOENT" && got != "EPERM" {
			t.Errorf("%s shows %.100q", path, got)
		}
	}
	for _, path := range []string{"/proc/kallsyms", "/proc/iomem"} {
		if address := regexp.MustCompile(`(?m)^\s*0*[1-9a-f][0-9a-f]{7}`).FindString(s.Files[path]); address != "" {
			t.Errorf("%s shows the address %s", path, address)
		}
	}
}

// checkNames looks for the host's paths, names and variables in everything that was read.
func checkNames(t *testing.T, s survey) {
	names := []string{rootfs.DefaultDir, programs + "/", secret, "GAOL_", "upperdir=/", "lowerdir=/", "workdir=/"}
	for _, image := range harness.Glob(rootfs.DefaultDir + "/images/*") {
		names = append(names, filepath.Base(image))
	}
	if wd, err := os.Getwd(); err == nil {
		names = append(names, wd)
	}
	all, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if i := strings.Index(string(all), name); i >= 0 {
			t.Errorf("%q shows: %.200s", name, all[max(0, i-80):])
		}
	}
	for _, space := range spaces {
		path := "/proc/self/ns/" + space
		host, err := os.Readlink(path)
		if got := s.Links[path]; err != nil || got == host || !strings.HasPrefix(got, space+":[") {
			t.Errorf("%s is %s, the host's is %s", path, got, host)
		}
	}
}

func checkProcesses(t *testing.T, s survey) {
	if diff := cmp.Diff([]int{1, s.Pid}, s.Pids); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}
	if s.Pid == os.Getpid() || s.Pid > 100 {
		t.Errorf("the run's pid is %d", s.Pid)
	}
	for path, want := range map[string]string{
		"/proc/self/cwd": "/workspace", "/proc/self/root": "/", "/proc/self/exe": "/usr/local/bin/node",
		"/proc/1/exe": "EACCES", "/proc/1/cwd": "EACCES", "/proc/1/root": "EACCES",
	} {
		if got := s.Links[path]; got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}

func checkNetwork(t *testing.T, s survey) {
	want := "lo"
	if harness.InGVisor() {
		want = "ERR_SYSTEM_ERROR" // netlink is not available
	}
	if s.Interfaces != want {
		t.Errorf("interfaces %s, want %s", s.Interfaces, want)
	}
	if n := strings.Count(s.Files["/proc/net/route"], "\n"); n != 1 {
		t.Errorf("%d routes: %s", n-1, s.Files["/proc/net/route"])
	}
	if n := strings.Count(s.Files["/proc/net/dev"], "\n"); n != 3 {
		t.Errorf("devices: %s", s.Files["/proc/net/dev"])
	}
}

func checkFolders(t *testing.T, s survey) {
	for path, want := range map[string]string{
		"/":        "bin dev etc home lib lib64 opt proc root run sbin sys tmp usr var workspace",
		"/dev":     "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero",
		"/dev/pts": "ptmx", "/dev/shm": "", "/proc/acpi": "", "/sys": "fs", "/run": "gaol", programs: "EACCES", "/home": "node", "/tmp": "", "/workspace": "",
		"/proc/1/fd": "EACCES", "/proc/1/root": "EACCES", "/proc/1/cwd": "EACCES",
	} {
		// core is a link to /proc/kcore, which not every kernel has.
		if got := strings.Replace(s.Dirs[path], "core fd", "fd", 1); got != want && (path != "/proc/acpi" || got != "ENOENT") {
			t.Errorf("%s has %q, want %q", path, got, want)
		}
	}
}

// checkDescriptors expects descriptors 0 to 4 to be the run's. The others are Node's own:
// pipes with both ends in the run, and the like.
func checkDescriptors(t *testing.T, s survey) {
	pipes := map[string]int{}
	for _, fd := range s.FDs {
		number, target := int(fd[0].(float64)), fd[1].(string)
		isPipe := strings.HasPrefix(target, "pipe:[")
		switch {
		case number <= 3 && isPipe, number == 4 && target == "/memfd:program (deleted)":
		case number > 4 && isPipe:
			pipes[target]++
		case number > 4 && (target == "anon_inode:[eventpoll]" || target == "anon_inode:[eventfd]" || target == "/dev/null"):
		case target == "ENOENT" || target == "/proc/"+strconv.Itoa(s.Pid)+"/fd": // opened by the listing itself
		default:
			t.Errorf("descriptor %d is %s", number, target)
		}
	}
	for target, ends := range pipes {
		if ends != 2 {
			t.Errorf("%s has %d ends in the run", target, ends)
		}
	}
}

func checkLimits(t *testing.T, s survey) {
	limits := map[string]string{
		"Max file size": "67108864 67108864 bytes", "Max core file size": "1 1 bytes", "Max processes": "8192 8192 processes",
		"Max open files": "1024 1024 files", "Max locked memory": "65536 65536 bytes", "Max pending signals": "1024 1024 signals",
		"Max msgqueue size": "0 0 bytes", "Max nice priority": "0 0", "Max realtime priority": "0 0",
	}
	if harness.InGVisor() { // signals count against the sandbox's memory, and the filter refuses queues of messages
		delete(limits, "Max pending signals")
		delete(limits, "Max msgqueue size")
	}
	for name, want := range limits {
		_, rest, _ := strings.Cut(s.Files["/proc/self/limits"], name)
		line, _, _ := strings.Cut(rest, "\n")
		if got := strings.Join(strings.Fields(line), " "); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A guest connects neither to a server on the host nor to any other machine.
func TestHostNetworkIsOutOfReach(t *testing.T) {
	rt := harness.Create(t, runtime.Options{})
	const connect = `import net from 'node:net';
		const [, , host, port] = process.argv;
		const s = net.connect(port, host).on('connect', () => { __return('connected'); s.destroy() }).on('error', e => __return(e.code))`
	for _, host := range []string{"127.0.0.1", "::1"} {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		if c, err := net.Dial("tcp", l.Addr().String()); err != nil {
			t.Errorf("the host itself can't connect: %v", err)
		} else {
			c.Close()
		}
		res := harness.Run(t, rt, connect, runtime.RunOptions{Args: []string{host, port}})
		if string(res.Value) != `"ECONNREFUSED"` {
			t.Errorf("%s: %s %s", host, res.Value, res.Stderr)
		}
	}
	for _, host := range []string{"192.0.2.1", "2001:db8::1", "169.254.169.254"} { // addresses for documentation, and of clouds' metadata services
		res := harness.Run(t, rt, connect, runtime.RunOptions{Args: []string{host, "80"}})
		if string(res.Value) != `"ENETUNREACH"` {
			t.Errorf("%s: %s %s", host, res.Value, res.Stderr)
		}
	}
}

// The runs of one runtime see each other, but not another's.
func TestRunsOfAnotherRuntimeAreInvisible(t *testing.T) {
	a, b := harness.Create(t, runtime.Options{}), harness.Create(t, runtime.Options{})
	harness.StartCommand(t, a, "sh", "-c", "echo up; sleep 99; true")
	const sleeps = "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 9[9]'"
	if got := harness.Output(t, a, runtime.RunOptions{}, "sh", "-c", sleeps+"; true"); got == "0" {
		t.Error("a run of the same runtime is not seen: this test proves nothing")
	}
	if got := harness.Output(t, b, runtime.RunOptions{}, "sh", "-c", sleeps+"; true"); got != "0" {
		t.Errorf("%s processes of the other runtime", got)
	}
}
