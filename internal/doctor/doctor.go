package doctor

import "context"

// Status is what a check found.
type Status string

// The statuses. With a missing one gaol can't run; with a degraded one it runs,
// with less than it could have.
const (
	OK       Status = "ok"
	Degraded Status = "degraded"
	Missing  Status = "missing"
)

// Check is one finding.
type Check struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Detail string `json:"detail"` // what was found
	Cure   string `json:"cure"`   // what to do; empty where nothing is to be done
}

// Report is what Examine found.
type Report struct {
	OK     bool    `json:"ok"` // nothing is missing
	Checks []Check `json:"checks"`
}

// Options says what to examine. The zero value looks at the default store and
// runs no program.
type Options struct {
	// Store is the folder of the image store. Empty: the default one.
	Store string

	// Program runs a program in a jail and gives a line about how it went. It is
	// called when the default image is there, so that it builds none. Nil: the
	// report has no such check.
	Program func(context.Context) (detail string, err error)
}

// finding is a Check without its name.
type finding struct {
	status       Status
	detail, cure string
}

func ok(detail string) finding             { return finding{OK, detail, ""} }
func degraded(detail, cure string) finding { return finding{Degraded, detail, cure} }
func missing(detail, cure string) finding  { return finding{Missing, detail, cure} }

// probe is a row of the examination.
type probe struct {
	name string
	why  string // "needed to ..."; empty for settings that only explain others
	look func(*examination) finding
}

// examination is what probes share.
type examination struct {
	ctx      context.Context
	options  Options
	root     bool // effective user id 0
	chroot   bool // set by the probe of the root folder, where it can be left
	hasImage bool // set by the probe of the image store
}

// Examine looks at everything and never fails: what can't be looked at is a
// finding too. When ctx is done the rest of the probes are left out.
func Examine(ctx context.Context, o Options) *Report {
	x := &examination{ctx: ctx, options: o, root: isRoot()}
	r := &Report{OK: true}
	for _, p := range probes() {
		if ctx.Err() != nil || p.look == nil {
			continue
		}
		f := p.look(x)
		if f.status != OK && p.why != "" {
			f.detail += "; needed to " + p.why
		}
		r.OK = r.OK && f.status != Missing
		r.Checks = append(r.Checks, Check{p.name, f.status, f.detail, f.cure})
	}
	return r
}

// probes are all checks, in the order in which they are made and printed: a
// failure of an early one often explains those of later ones.
func probes() []probe {
	list := []probe{
		{"privileges", "make namespaces, cgroups and mounts", lookPrivileges},
		{"kernel", "keep file operations and descriptors in the guest's tree", lookKernel},
		{"root folder", "make mounts and user namespaces", lookRoot},
		{"seccomp", "filter system calls", lookSeccomp},
		{"libseccomp", "number the system calls of the filter", lookLibseccomp},
		{"landlock", "hold the file permissions of policies, once gaol has them", lookLandlock},
		{"socket lists", "bound what guests with a network have in sockets", lookSocketLists},
		{"audit", "", lookAudit},
		{"user namespaces", "", lookUserNamespaceLimit},
		{"unprivileged user namespaces", "", lookUnprivileged},
		{"apparmor", "", lookAppArmor},
	}
	for _, n := range namespaces {
		list = append(list, probe{n.name + " namespace", n.why, n.look})
	}
	return append(list,
		probe{"cgroup", "limit and count memory, processor time and processes", lookCgroup},
		probe{"tmpfs", "hold what guests write, within limits", func(x *examination) finding { return x.lookMount(childTmpfs) }},
		probe{"overlayfs", "lay the guest's files over the image", func(x *examination) finding { return x.lookMount(childOverlay) }},
		probe{"image store", "keep images", lookStore},
		probe{"file owners", "show the image's files as root's", lookOwners},
		probe{"default image", "show guests Node and its libraries", lookImage},
		probe{"image tools", "build images", lookTools},
		probe{"program in a jail", "", lookProgram},
	)
}
