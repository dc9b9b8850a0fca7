package doctor

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	seccomp "github.com/seccomp/libseccomp-golang"

	"gaol/jail"
	"gaol/jail/cgroup"
	"gaol/jail/gateway"
	"gaol/rootfs"
)

// Status is the result of a check.
type Status string

// The statuses. If a check is Missing, gaol can't run; if one is Degraded, gaol runs with
// fewer features. Optional is for additions that few machines need, and this one lacks.
const (
	OK       Status = "ok"
	Optional Status = "optional"
	Degraded Status = "degraded"
	Missing  Status = "missing"
)

// Check is the result of one probe.
type Check struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Detail string `json:"detail"` // the observation
	Cure   string `json:"cure"`   // how to fix it; empty if nothing needs fixing
}

// Report is the result of Examine.
type Report struct {
	OK     bool    `json:"ok"` // no check is Missing
	Checks []Check `json:"checks"`
}

// Options configure Examine. The zero value checks the default store and runs no program.
type Options struct {
	// Store is the folder of the image store; empty means the default.
	Store string

	// Program runs a program in a sandbox of an isolation and returns a line that describes the
	// result. It is called only if the default image exists, so that it builds none. If nil, the
	// checks report that they were skipped.
	Program func(ctx context.Context, isolation string) (detail string, err error)
}

// The results of a probe. Examine sets their names.

func ok(detail string) Check             { return Check{Status: OK, Detail: detail} }
func degraded(detail, cure string) Check { return Check{Status: Degraded, Detail: detail, Cure: cure} }
func missing(detail, cure string) Check  { return Check{Status: Missing, Detail: detail, Cure: cure} }

// probe is one check of the examination.
type probe struct {
	name string
	why  string // completes "needed to ..."; empty for optional additions
	run  func(*examination) Check
}

// asRoot returns a probe that only root can run.
func asRoot(run func(*examination) Check) func(*examination) Check {
	return func(x *examination) Check {
		if !x.root {
			return degraded("not tried", "run gaol doctor as root")
		}
		return run(x)
	}
}

// works returns a probe that tries a feature. If that fails, absent makes the result.
func works(absent func(detail, cure string) Check, cure string, try func() error) func(*examination) Check {
	return func(*examination) Check {
		if err := try(); err != nil {
			return absent(err.Error(), cure)
		}
		return ok("works")
	}
}

// trySeccomp tries the kernel's features.
func trySeccomp() error {
	_, err := seccomp.GetAPI()
	return err
}

func tryGateway() error { return cmp.Or(gateway.Probe(), cgroup.CheckIdentified()) }

// examination is the state that probes share.
type examination struct {
	ctx      context.Context
	options  Options
	store    string        // the path of the store's folder
	root     bool          // effective user id 0
	image    *rootfs.Image // the default one; nil if there is none
	imageErr error         // why
}

// Examine runs all probes and never fails: a check that cannot run is a finding too. It
// skips the remaining probes when ctx is done.
func Examine(ctx context.Context, o Options) *Report {
	store, err := filepath.Abs(cmp.Or(o.Store, rootfs.DefaultDir))
	if err != nil {
		return &Report{Checks: []Check{missing("working directory: "+err.Error(), "choose a folder with --store")}}
	}
	x := &examination{ctx: ctx, options: o, store: store, root: isRoot()}
	x.image, x.imageErr = lookup(o.Store)
	r := &Report{OK: true}
	for _, p := range probes() {
		if ctx.Err() != nil {
			break
		}
		c := p.run(x)
		c.Name = p.name
		if c.Status != OK && p.why != "" {
			c.Detail += "; needed to " + p.why
		}
		r.OK = r.OK && c.Status != Missing
		r.Checks = append(r.Checks, c)
	}
	return r
}

// probes returns all checks in the order in which they run and are printed: an early
// failure often explains later ones.
func probes() []probe {
	list := []probe{
		{"privileges", "make namespaces, cgroups and mounts", probePrivileges},
		{"kernel", "keep file operations and descriptors in the guest's tree", probeKernel},
		{"root folder", "make mounts and user namespaces", asRoot(probeRoot)},
		{"seccomp", "filter system calls", works(missing, "boot a kernel with CONFIG_SECCOMP=y and CONFIG_SECCOMP_FILTER=y", trySeccomp)},
		{"landlock", "enforce the file permissions of policies", probeLandlock},
		{"socket lists", "limit the socket memory of guests with a network",
			works(degraded, "load the modules tcp_diag and udp_diag, or boot a kernel with CONFIG_INET_DIAG and CONFIG_INET_UDP_DIAG", jail.CheckSocketLists)},
		{"gateway", "lead connections to external hosts through the host",
			works(degraded, "boot a kernel of version 5.9 or later with CONFIG_BPF_SYSCALL and CONFIG_CGROUP_BPF, mount cgroup v2, and give gaol CAP_BPF", tryGateway)},
		{"audit", "", probeAudit},
	}
	for _, n := range namespaces {
		list = append(list, probe{n.name + " namespace", n.why, n.probe})
	}
	return append(list,
		probe{"cgroup", "limit and count memory, processor time and processes", probeCgroup},
		probe{"tmpfs", "store what guests write, within limits", mounted("boot a kernel with CONFIG_TMPFS=y", tryTmpfs)},
		probe{"overlayfs", "layer the guest's files over the image", mounted("modprobe overlay, or boot a kernel with CONFIG_OVERLAY_FS", tryOverlay)},
		probe{"image store", "keep images", probeStore},
		probe{"disks", "keep more than 64 MiB of a guest's files", asRoot(probeDisks)},
		probe{"file owners", "show the image's files as root's", asRoot(probeOwners)},
		probe{"default image", "show guests Node and its libraries", probeImage},
		probe{"image files", "show guests the files that were built", asRoot(probeImageFiles)},
		probe{"image tools", "build images", probeTools},
		probe{"program in a jail", "", probeJail},
		probe{"isolation runc", "use --isolation runc", withOCI("runc")},
		probe{"isolation crun", "use --isolation crun", withOCI("crun")},
		probe{"isolation gvisor", "use --isolation gvisor", probeGVisor},
		probe{"isolation microvm", "use --isolation microvm", probeMicroVM},
	)
}

// Text formats the report for people: a line for each check, its cure below it, and a
// summary.
func (r *Report) Text() string {
	width := 0
	for _, c := range r.Checks {
		width = max(width, len(c.Name))
	}
	var text strings.Builder
	for _, c := range r.Checks {
		fmt.Fprintf(&text, "%-*s  %-*s  %s\n", len(Degraded), c.Status, width, c.Name, c.Detail)
		if c.Cure != "" {
			fmt.Fprintf(&text, "%-*s  cure: %s\n", len(Degraded)+2+width, "", c.Cure)
		}
	}
	fmt.Fprintf(&text, "\n%s\n", r.summary())
	return text.String()
}

func (r *Report) summary() string {
	count := map[Status]int{}
	for _, c := range r.Checks {
		count[c.Status]++
	}
	switch {
	case count[Missing] > 0:
		return fmt.Sprintf("gaol can't run here: %d missing, %d degraded", count[Missing], count[Degraded])
	case count[Degraded] > 0:
		return fmt.Sprintf("gaol can run here, with less than it could: %d degraded", count[Degraded])
	}
	return "gaol can run here"
}
