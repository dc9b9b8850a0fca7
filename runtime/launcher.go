package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gaol/rootfs"
	"gaol/runtime/internal/guest"
	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/sandbox/native"
	"gaol/runtime/internal/work"
)

// Launcher is a way to start runs. Apart from speed, guests cannot distinguish the
// launchers, except by what LauncherZygote lists.
type Launcher int

const (
	// LauncherZygote forks runs from a Node that is already running. The host process
	// keeps one such Node (a zygote) for each image, heap size, cgroup and
	// ZygoteOptions, from the first Create until CloseIdle. A zygote that dies or hangs is
	// replaced, and the runs that it had not started start from the next one. It works
	// with Node 22, 24 and 26. An imported image must be trusted, see
	// [rootfs.ImportOptions], and must have glibc.
	//
	// A guest can see these differences: /proc/self/maps lists the library that forks;
	// reports of process.report name that library and the flags of the zygote; the
	// standard streams exist before their first use; V8 starts its helper threads when it
	// needs them; SIGUSR1 does nothing, while it starts a debugger in other Nodes; and
	// where permissions list the files that may be executed or the programs that may be
	// started, process.execPath may be executed but /proc/self/exe may not.
	//
	// A run whose environment contains a variable that Node reads when it starts, such as
	// NODE_OPTIONS, NODE_EXTRA_CA_CERTS or LC_ALL, or another LANG, gets a new Node
	// process, and so does a program with a terminal: see Result.LauncherReason. A list of
	// programs that may be started must include Node then. Node reads NODE_ENV, NODE_PATH,
	// NODE_TLS_REJECT_UNAUTHORIZED, UV_THREADPOOL_SIZE and other variables later.
	LauncherZygote Launcher = iota

	// LauncherExec starts a new Node process for each run. It works with any version of
	// Node and any image, also with an image without Node, in which only Command works. It
	// is faster for a host process that makes a single run, because no zygote has to warm
	// up.
	LauncherExec
)

// String returns the launcher's name on the command line.
func (l Launcher) String() string { return nameOf(l, "zygote", "exec") }

// MarshalText returns the launcher's name.
func (l Launcher) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText decodes a name. The default stands for names that this version does not know.
func (l *Launcher) UnmarshalText(name []byte) error {
	*l = LauncherZygote
	if string(name) == LauncherExec.String() {
		*l = LauncherExec
	}
	return nil
}

// nameOf returns the name of a constant whose type has values from 0 on.
func nameOf[T ~int](value T, names ...string) string {
	if value < 0 || int(value) >= len(names) {
		return fmt.Sprintf("%s(%d)", reflect.TypeFor[T]().Name(), int(value))
	}
	return names[value]
}

// ZygoteOptions limits how long one zygote is used. All runs forked from one zygote have
// the same address space layout. A zero field takes its default; a negative one, except for Park, is an
// error. Forks and Age can be exceeded a little, because a zygote is used until its
// successor is warm.
type ZygoteOptions struct {
	Forks int           `bounds:"0.."` // runs forked from one zygote; default 5,000
	Age   time.Duration `bounds:"0.."` // time since its start; default 10 minutes

	// Patience is how long one fork, which normally takes milliseconds, may take before
	// the zygote counts as hung. Its successor gets twice as long. A run that waits for a
	// hung zygote ends that much later. Default 2 seconds.
	Patience time.Duration `bounds:"0.."`

	// Park is how long the process of a runtime's next run waits for its program. It is forked
	// after each run, if a processor is idle and no other process of the runtime exists, so that
	// the next run starts faster. Default 1 second; negative: it is not forked in advance.
	Park time.Duration

	// CgroupParent is the cgroup in which zygotes are. Empty: Options.CgroupParent. Runtimes with
	// different ones of those share zygotes if this is the same.
	CgroupParent string
}

const defaultPark = time.Second

func (o ZygoteOptions) validate(l Launcher) error {
	if l != LauncherZygote && o != (ZygoteOptions{}) {
		return optionError("Zygote", "the launcher is %v", l)
	}
	if err := fill(&o, false); err != nil {
		return optionError("Zygote", "%w", err)
	}
	if o.CgroupParent != "" {
		return checkCgroup(o.CgroupParent)
	}
	return nil
}

func (l Launcher) validate() error {
	if l < LauncherZygote || l > LauncherExec {
		return optionError("Launcher", "%v does not exist", l)
	}
	return nil
}

// forkable lists the major versions of Node that zygotes are tested with. Other versions
// may have threads or exit codes that the zygote does not expect.
var forkable = []string{"22", "24", "26"}

// Supports reports why the launcher cannot start the Node of an image.
func (l Launcher) Supports(image *rootfs.Image) error {
	if l != LauncherZygote {
		return nil
	}
	if _, err := image.ZygoteImage(); err != nil {
		return optionError("Launcher", "the zygote does not work with this image, use LauncherExec: %w: %w", err, ErrUnsupported)
	}
	if major, _, _ := strings.Cut(image.Node, "."); !slices.Contains(forkable, major) {
		return optionError("Launcher", "the zygote works with Node %s, the image has %s, which needs LauncherExec: %w",
			strings.Join(forkable, ", "), image.Node, ErrUnsupported)
	}
	return nil
}

// Warm waits until the zygote that the runtime's runs are forked from is ready. Create
// starts it, unless an earlier runtime of this process did. Without Warm the first run
// waits for it, 0.1 s on an idle machine. With [LauncherExec] Warm returns immediately.
func (rt *NodeRuntime) Warm(ctx context.Context) (err error) {
	defer wrap(&err, "warm")
	if rt.Paused() {
		return ErrPaused
	}
	return rt.sandbox.Warm(ctx, false)
}

// CloseIdle stops the zygotes that no open runtime uses. Without it, one zygote of each
// kind (see [LauncherZygote]) stays warm for the next runtime until the host process ends. It also
// ends the processes that have compiled code for such runtimes (see Options.WorkInProcess), which
// otherwise end after half a minute.
func CloseIdle() error { return errors.Join(native.CloseIdle(), work.CloseIdle()) }

// zygoteEntry is the path of the main module that Node is started with. No such file
// exists: the preload never returns to Node.
const zygoteEntry = "/main"

// warm describes the zygotes of the runtimes with these settings.
func (s settings) warm() *sandbox.Warm {
	return &sandbox.Warm{
		Image: cmp.Or(s.zygote, s.image), Layer: guest.Files(), Args: s.warmArgs(), Env: envList(baseEnv()),
		CgroupParent: cmp.Or(s.Zygote.CgroupParent, s.CgroupParent),
		Forks:        s.Zygote.Forks, Age: s.Zygote.Age, Patience: s.Zygote.Patience,
	}
}

// warmArgs returns the arguments of a zygote with the size of the settings' heap.
func (s settings) warmArgs() []string {
	// The thread that --disable-sigusr1 prevents would wait for the zygote's signals.
	return slices.Concat([]string{s.nodePath(), "--disable-sigusr1"}, heapFlags(s.heapMiB), []string{"--require=" + guest.Zygote, zygoteEntry})
}
