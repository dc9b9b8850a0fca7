package rootfs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"gaol/rootfs/download"
	"gaol/rootfs/layer"
	"gaol/rootfs/oci"
	"gaol/vfs"
)

// kindDerived is the Imported.Kind of a derived image.
const kindDerived = "derived"

// DeriveOptions describe an image to derive from another.
type DeriveOptions struct {
	// From is the base: a name, an id, or a prefix of one. Empty: the default image, which is built if the store
	// lacks it.
	From string

	// Name is a name for the image, as in [ImportOptions].
	Name string

	// Steps are performed in this order, at most 100.
	Steps []Step

	// NoCache performs all steps, also those whose result the store has, and keeps no result but the image. The results
	// of steps are in a temporary folder, which the next write to the store removes if this process is killed.
	NoCache bool

	// TrustNode lets the image's Node run outside of jails as root, as in [ImportOptions]. Without it, an image with a
	// step Run or Copy is not trusted, because that can replace Node and its libraries: forked runs have the trusted
	// base's, as long as the store has that and Node itself is unchanged. The other steps keep the trust in the base.
	TrustNode bool

	// Limits bounds the total size and number of files that the performed steps add.
	Limits layer.Limits

	// Progress receives a line for each step, and the output of commands. Nil: it is discarded.
	Progress io.Writer
}

// Step is a change of an image. One of Run, With, Copy, Env, User and Dir is set.
type Step struct {
	// Run is a command for the image's /bin/sh, which Runner runs in a sandbox. Its changes of files are kept, except
	// in /tmp and /var/tmp.
	Run    string
	Runner Runner

	// With adds Debian packages, as in [BuildOptions]. The base must have been built with Debian packages.
	With []string

	// Copy adds files of the host.
	Copy *Copy

	// Env has variables for later steps and for runs of the image, which override those of the base. In values, $NAME and
	// ${NAME} are replaced by the variable of an earlier step or of the base; `\$` is a dollar sign.
	Env map[string]string

	// User is the user of later commands: "root", the default, owns all files of the image; "node" only its home
	// folder, /workspace and the temporary folders. Both have the same id and no privileges.
	User string

	// Dir is the working directory of later commands and copies: an absolute path, or one relative to the
	// previous one, which is / at first. Commands make it if it is missing.
	Dir string
}

// Copy is a step that copies files of the host. Links stay links.
type Copy struct {
	Root *os.Root // the folder of the host that the files are in
	From []string // paths in it
	To   string   // path of the image. Folders are copied to it; for more than one file, or with a slash at its end, it is a folder
}

// Runner runs commands of steps in sandboxes: see runtime.StepRunner.
type Runner interface {
	// RunStep runs the command in a sandbox with the image. If it succeeds, RunStep calls collect with the upper
	// folder of the overlay over the image's tree, which nothing changes meanwhile.
	RunStep(ctx context.Context, image *Image, c StepCommand, collect func(changes *os.File) error) error

	// Key identifies the permissions and the files of a command. Steps with different keys do not share results. The result of a
	// step with the key "" is not used again.
	Key() string
}

// StepCommand is the command of a step.
type StepCommand struct {
	Script string // for /bin/sh
	Dir    string // made if it is missing
	Env    map[string]string
	Owner  bool      // its user owns all files of the image
	Output io.Writer // of the command
}

// String returns the step as a line of a Gaolfile, without the values of variables.
func (s *Step) String() string {
	switch {
	case s.Run != "":
		return "RUN " + strings.Join(strings.Fields(s.Run), " ")
	case s.With != nil:
		return "WITH " + strings.Join(s.With, " ")
	case s.Copy != nil:
		return "COPY " + strings.Join(append(slices.Clip(s.Copy.From), s.Copy.To), " ")
	case s.Env != nil:
		return "ENV " + strings.Join(slices.Sorted(maps.Keys(s.Env)), " ")
	case s.User != "":
		return "USER " + s.User
	}
	return "WORKDIR " + s.Dir
}

// label describes the step with the index n of all.
func (s *Step) label(n, all int) string { return fmt.Sprintf("step %d/%d: %.200s", n+1, all, s) }

// Check returns an error unless the step is complete and valid.
func (s *Step) Check() error {
	kinds := 0
	for _, set := range []bool{s.Run != "", s.With != nil, s.Copy != nil, s.Env != nil, s.User != "", s.Dir != ""} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return errors.New("want exactly one of run, with, copy, env, user and dir")
	case s.Run != "" && s.Runner == nil:
		return errors.New("nothing runs the command: Runner is nil")
	case s.User != "" && s.User != "root" && s.User != "node":
		return fmt.Errorf("user %.100q: want root or node", s.User)
	}
	for name, value := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return fmt.Errorf("%.100q: not a valid name or value of a variable", name)
		}
	}
	return nil
}

const maxSteps = 100

// Derive makes an image from another by steps. Each step Run, With and Copy makes an image, which shares the unchanged
// files with the step's base by hard links. The results of Run and With get a name that identifies the base and the step, and
// are used again by later calls; [Store.Prune] removes them. A failed Derive keeps those of the steps before. See
// [Store.Import] for what happens to owners and modes of files.
//
// An error is a [*StepError], or about the base.
func (s *Store) Derive(ctx context.Context, o DeriveOptions) (_ *Image, err error) {
	d := &deriver{store: s, o: o, report: download.NewReporter(o.Progress), user: "root", dir: "/"}
	if err := d.begin(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.lease.Close(), d.temp.Close()) }()
	for n := range o.Steps {
		label := o.Steps[n].label(n, len(o.Steps))
		d.report.Line("%s", label)
		if err := d.perform(ctx, &o.Steps[n]); err != nil {
			return nil, &StepError{"derive image", label, err}
		}
	}
	if err := d.finish(ctx); err != nil {
		return nil, &StepError{"derive image", "store", err}
	}
	d.report.Line("stored %s (%.0f MB) %s", d.image.ID, float64(d.image.Size)/1e6, cmp.Or(o.Name, strings.Join(d.image.Names, " ")))
	return d.image, nil
}

// deriver is a derivation in progress.
type deriver struct {
	store  *Store
	o      DeriveOptions
	names  []string // of the result
	report *download.Reporter

	image     *Image // of the last step
	lease     *Lease // of image
	temp      *tempDir
	results   *Store // in temp, of steps that are not used again
	limits    layer.Limits
	config    oci.Config
	changed   bool   // config differs from the image's
	trusted   bool   // the image's Node
	zygote    *Image // trusted image in the store, whose Node image has; nil for none
	user, dir string
}

func (d *deriver) begin(ctx context.Context) (err error) {
	if len(d.o.Steps) == 0 || len(d.o.Steps) > maxSteps {
		return fmt.Errorf("derive image: %d steps, want 1 to %d", len(d.o.Steps), maxSteps)
	}
	if d.names, err = namesOf(d.o.Name); err != nil {
		return err
	}
	for n := range d.o.Steps {
		if err := d.o.Steps[n].Check(); err != nil {
			return &StepError{"derive image", d.o.Steps[n].label(n, len(d.o.Steps)), err}
		}
	}
	d.limits = d.o.Limits.WithDefaults()
	if d.image, err = d.store.Ensure(ctx, d.o.From, BuildOptions{Progress: d.o.Progress}); err != nil {
		return err
	}
	d.config = builtConfig
	if m := d.image.Imported; m != nil {
		d.config = m.Config
		d.dir = cmp.Or(path.Join("/", m.Config.WorkingDir), "/")
	}
	d.trusted = d.image.CanFork() == nil
	d.zygote, _ = d.image.ZygoteImage()
	if d.temp, err = d.store.makeTemp(ctx); err != nil {
		return err
	}
	d.results = &Store{dir: d.temp.path("store"), in: d.store.in, kind: imageKind}
	if d.lease, err = d.image.Hold(); err != nil {
		return errors.Join(err, d.temp.Close())
	}
	return nil
}

// perform performs a step.
func (d *deriver) perform(ctx context.Context, s *Step) error {
	switch {
	case s.Env != nil:
		return d.setEnv(s.Env)
	case s.User != "":
		d.user = s.User
		return nil
	case s.Dir != "":
		d.dir = path.Join("/", d.path(s.Dir))
		d.config.WorkingDir, d.changed = d.dir, true
		return nil
	}
	trusted := d.trusted && s.With != nil
	if d.o.NoCache || s.Copy != nil || s.Run != "" && s.Runner.Key() == "" { // reading files is as much work as copying them
		d.trusted = trusted
		return d.make(ctx, d.results, nil, s)
	}
	runner := ""
	if s.Run != "" {
		runner = s.Runner.Key()
	}
	text, err := json.Marshal([]any{builder, d.image.ID, d.config, d.dir, d.user, d.trusted, d.o.TrustNode, s.Run, runner, s.With})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	name := "step-" + hex.EncodeToString(sum[:16])
	if i, err := d.store.byName(name); err == nil && d.use(i) == nil {
		d.zygote, _ = i.ZygoteImage()
		d.report.Line("use the stored result %.*s", len(idPrefix)+12, i.ID)
		return nil
	}
	d.trusted = trusted
	return d.make(ctx, d.store, []string{name}, s)
}

// path returns a path relative to the working directory.
func (d *deriver) path(p string) string {
	if path.IsAbs(p) {
		return p
	}
	return d.dir + "/" + p
}

// ErrVariables is the error for more than 64 KiB of variables: references multiply them.
var ErrVariables = errors.New("the variables of the image have more than 64 KiB")

const maxEnv = 64 << 10

func (d *deriver) setEnv(env map[string]string) error {
	list := slices.Clone(d.config.Env)
	size := 0
	value := func(name string) string {
		text := variable(d.config.Env, name)
		if text == "" && name == "PATH" {
			text = vfs.SearchPath
		}
		if size += len(text); size > maxEnv {
			return ""
		}
		return text
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = slices.DeleteFunc(list, func(v string) bool { return strings.HasPrefix(v, name+"=") })
		parts := strings.Split(env[name], `\$`)
		for i, part := range parts {
			parts[i] = os.Expand(part, value)
		}
		list = append(list, name+"="+strings.Join(parts, "$"))
	}
	if size > maxEnv || len(strings.Join(list, "")) > maxEnv {
		return ErrVariables
	}
	d.config.Env, d.changed = list, true
	return nil
}

// use makes i the base of the next step.
func (d *deriver) use(i *Image) error {
	lease, err := i.Hold()
	if err != nil {
		return err
	}
	err = d.lease.Close()
	d.image, d.lease, d.changed, d.trusted = i, lease, false, i.CanFork() == nil
	return err
}

// finish stores settings that no step has stored, and the image with its name.
func (d *deriver) finish(ctx context.Context) (err error) {
	switch {
	case d.o.TrustNode && !d.trusted || d.changed:
		return d.make(ctx, d.store, d.names, &Step{})
	case d.image.StoreDir() != d.store.dir:
		if err := os.Rename(d.image.dir, d.temp.path("image")); err != nil {
			return err
		}
		d.image, err = d.store.commit(ctx, d.temp, d.image, d.names)
	case d.names != nil:
		d.image, _, err = d.store.Tag(ctx, d.image.ID, d.o.Name)
	}
	return err
}

// make makes the image of a step in a store, with names.
func (d *deriver) make(ctx context.Context, to *Store, names []string, s *Step) (err error) {
	m := &importer{
		build:   build{store: d.store, report: download.NewReporter(nil)},
		options: ImportOptions{Limits: d.limits, TrustNode: d.trusted || d.o.TrustNode},
		source:  &oci.Image{Kind: kindDerived, Digest: d.image.ID, Config: d.config},
		name:    d.image.ID,
	}
	defer func() { err = errors.Join(err, m.build.close()) }()
	if err := m.prepare(ctx); err != nil {
		return err
	}
	m.plan.names, m.image.Packages = names, d.image.Packages
	if err := m.tree.LinkAll(ctx, d.image.Root()); err != nil {
		return err
	}
	if err := d.change(ctx, m, s); err != nil {
		return err
	}
	d.limits = m.tree.Left()
	if err := errors.Join(m.addJailFiles(ctx), m.seal(ctx)); err != nil {
		return err
	}
	switch trusted := m.image.CanFork() == nil; {
	case trusted && to == d.store:
		d.zygote = &m.image
	case !trusted && d.zygote != nil && m.image.Imported.NodePath == d.zygote.nodePath() && sameFile(m.root()+d.zygote.nodePath(), d.zygote.Root()+d.zygote.nodePath()):
		m.image.Imported.Base = d.zygote.ID
	case !trusted:
		d.zygote = nil
	}
	m.store = to
	if err := errors.Join(to.makeDirs(), m.commit(ctx)); err != nil {
		return err
	}
	return d.use(&m.image)
}

// nodePath returns the guest path of the image's Node, without links.
func (i *Image) nodePath() string {
	if i.Imported == nil {
		return nodeBinary
	}
	return i.Imported.NodePath
}

// sameFile reports whether two paths are links to one file.
func sameFile(one, two string) bool {
	a, err := os.Lstat(one)
	b, missing := os.Lstat(two)
	return err == nil && missing == nil && a.Mode().IsRegular() && os.SameFile(a, b)
}

// change performs a step in the tree of its image.
func (d *deriver) change(ctx context.Context, m *importer, s *Step) error {
	switch {
	case s.With != nil:
		return d.install(ctx, m, s.With)
	case s.Copy != nil:
		return d.copy(ctx, m.tree, s.Copy)
	case s.Run == "":
		return nil
	}
	c := StepCommand{Script: s.Run, Dir: d.dir, Env: variables(d.config.Env), Owner: d.user == "root", Output: cmp.Or(d.o.Progress, io.Discard)}
	return s.Runner.RunStep(ctx, d.image, c, func(changes *os.File) error {
		return m.tree.Overlay(ctx, changes, []string{"/tmp", "/var/tmp", "/dev", "/proc", "/run"})
	})
}

var errNoPackages = errors.New("the base was not built with Debian packages: use gaol image build --with, or an image that has them")

func (d *deriver) install(ctx context.Context, m *importer, with []string) (err error) {
	if d.image.Packages == nil {
		return errNoPackages
	}
	if err := m.store.in.checkHost(&BuildOptions{}); err != nil {
		return err
	}
	if m.plan.with, _, err = m.store.in.choosePackages(BuildOptions{With: with}); err != nil {
		return err
	}
	for _, p := range d.image.Packages {
		m.plan.packages = append(m.plan.packages, p.Name)
	}
	quiet := m.report
	m.report = d.report
	defer func() { m.report = quiet }()
	return m.installPackages(ctx)
}

func (d *deriver) copy(ctx context.Context, to *layer.Tree, c *Copy) error {
	target := path.Clean(d.path(c.To))
	store, err := os.Stat(d.store.dir)
	if err != nil {
		return err
	}
	for _, from := range c.From {
		info, err := c.Root.Lstat(from)
		if err != nil {
			return err
		}
		at := target
		if !info.IsDir() && (len(c.From) > 1 || strings.HasSuffix(c.To, "/") || to.IsFolder(target)) {
			at = path.Join(target, path.Base(from))
		}
		if err := to.CopyFrom(ctx, c.Root, path.Clean(from), at, store); err != nil {
			return err
		}
	}
	return nil
}

// Env returns the variables that runs of the image have: those of a derived image, and PATH of an imported one.
func (i *Image) Env() map[string]string {
	env := map[string]string{}
	if i.Imported != nil && i.Imported.Kind == kindDerived {
		env = variables(i.Imported.Config.Env)
		delete(env, "PATH")
	}
	if p := i.Path(); p != "" {
		env["PATH"] = p
	}
	return env
}

// variables returns a list of NAME=VALUE as a map.
func variables(list []string) map[string]string {
	env := map[string]string{}
	for _, v := range list {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	return env
}
