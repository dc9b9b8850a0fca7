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
