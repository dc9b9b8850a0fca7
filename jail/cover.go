package jail

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// cover makes what the guest is to have, and mounts what hides or fixes places inside of
// folders that are else the guest's, or the image's, to use. What is not there is made,
// so that the guest can't make it.
//
// A mount stays with its folder, which could be moved away, and another be made in its
// place: so folders of the guest's that lead to one are mounted on themselves, as the
// kernel does not rename, nor remove, where something is mounted. The price is that
// nothing can be renamed or linked from there to other folders (EXDEV).
//
// Preconditions: those of stage; the root is laid.
func cover(s *Spec, firstID int) error {
	c := newCovers(s, firstID)
	for _, p := range s.Make {
		if err := c.makeGuests(p); err != nil {
			return err
		}
	}
	for _, p := range s.Keep {
		if err := c.make(p); err != nil {
			return err
		}
	}
	for _, f := range s.Files {
		if err := c.write(f); err != nil {
			return err
		}
	}
	c.hideLaid()
	places := c.places()
	for _, p := range places {
		if err := c.prepare(p); err != nil {
			return err
		}
	}
	for _, dir := range s.Pinned {
		for ; dir != "/"; dir = filepath.Dir(dir) {
			if err := c.pin(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	for _, p := range places {
		if err := c.mount(p); err != nil {
			return err
		}
	}
	return nil
}

type covers struct {
	spec   *Spec
	guest  int // host id of the guest
	pinned map[string]bool
	kept   map[string]string // shown places, and where they are mounted meanwhile
	links  map[string]string // shown symbolic links, and what they say

	passages map[string]bool // made in a folder of the guest's, and hidden: not its own
	laid     []Place         // what hideLaid hides
}

func newCovers(s *Spec, firstID int) *covers {
	return &covers{
		spec: s, guest: firstID + GuestUID, pinned: map[string]bool{}, kept: map[string]string{}, links: map[string]string{},
		passages: map[string]bool{},
	}
}

// places are those that need a mount, what holds others first.
func (c *covers) places() []Place {
	var list []Place
	for _, p := range slices.Concat(c.spec.Hide, c.spec.Show, c.flagged()) {
		if p.Path != "/" && !slices.ContainsFunc(list, func(q Place) bool { return q.Path == p.Path }) && c.needsMount(p) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b Place) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// flagged are the places whose mounts have other flags than those around them.
func (c *covers) flagged() []Place {
	var list []Place
	if len(c.spec.ReadOnly) > 0 {
		list = slices.Concat(c.spec.ReadOnly, c.spec.Writable)
	}
	if len(c.spec.NoExec) > 0 {
		list = slices.Concat(list, c.spec.NoExec, c.spec.Exec)
	}
	return list
}

// hideLaid hides what has come to a hidden tree since layRoot left it empty: mounts and
// files, by the folder of the guest's, the mount, or the new folder, that they are in.
func (c *covers) hideLaid() {
	if !c.spec.hides("/") {
		return
	}
	var tops, laid []string
	for _, m := range c.spec.Mounts {
		laid = append(laid, m.Target)
	}
	tops = slices.Concat(c.spec.Dirs, laid)
	for _, f := range c.spec.Files {
		laid = append(laid, f.Path)
	}
	slices.Sort(tops) // what holds others first
	for _, path := range laid {
		if !c.spec.hides(path) {
			continue
		}
		around := func(dir string) bool { return (path == dir || isBelow(path, dir)) && c.spec.hides(dir) }
		top := path
		if i := slices.IndexFunc(tops, around); i >= 0 {
			top = tops[i]
		} else {
			for dir := filepath.Dir(path); c.spec.hides(dir) && isMissing(filepath.Join(stageTree, dir)); dir = filepath.Dir(dir) {
				top = dir
			}
		}
		info, err := os.Lstat(filepath.Join(stageRoot, top))
		if p := (Place{top, err == nil && info.IsDir()}); err == nil && !slices.Contains(c.laid, p) {
			c.laid = append(c.laid, p)
		}
	}
	with := *c.spec
	with.Hide = slices.Concat(c.spec.Hide, c.laid)
	c.spec = &with
}

func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}

// needsMount reports false for what layRoot has seen to.
func (c *covers) needsMount(p Place) bool {
	above := c.spec.hides(filepath.Dir(p.Path))
	switch {
	case slices.Contains(c.laid, p):
		return true
	case slices.Contains(c.spec.Hide, p):
		return !above && !isBlank(filepath.Join(stageRoot, p.Path))
	case above && slices.Contains(c.spec.Show, p) && c.covered(p.Path):
		return true
	}
	return slices.Contains(c.flagged(), p) && !c.spec.hides(p.Path)
}

// covered reports whether a folder above is hidden by a mount.
func (c *covers) covered(path string) bool {
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if slices.Contains(c.spec.Hide, Place{dir, true}) {
			return c.needsMount(Place{dir, true})
		}
	}
	return false
}

// prepare makes what is not there, keeps it where it is, and keeps what is to be shown
// again.
func (c *covers) prepare(p Place) error {
	if target, err := os.Readlink(filepath.Join(stageRoot, p.Path)); err == nil && !p.Tree && slices.Contains(c.spec.Show, p) {
		c.links[p.Path] = target // which is made anew where it is shown: no mount stands for a link
		return nil
	}
	if err := c.make(p); err != nil {
		return err
	}
	for dir := filepath.Dir(p.Path); dir != "/"; dir = filepath.Dir(dir) {
		if err := c.pin(dir); err != nil {
			return err
		}
	}
	if !slices.Contains(c.spec.Show, p) {
		return nil
	}
	at := filepath.Join(stageKept, strconv.Itoa(len(c.kept)))
	c.kept[p.Path] = at
	return errors.Join(makeAs(at, p.Tree, 0o755), unix.Mount(filepath.Join(stageRoot, p.Path), at, "", unix.MS_BIND|unix.MS_REC, ""))
}

// isGuests reports whether the guest can make or move things in a folder.
func (c *covers) isGuests(path string) bool {
	var info unix.Stat_t
	return unix.Lstat(path, &info) == nil && c.canChange(&info)
}

func (c *covers) canChange(dir *unix.Stat_t) bool {
	return int(dir.Uid) == c.guest || dir.Mode&0o002 != 0
}

// pin keeps a folder, or a file, that the guest could move where it is.
func (c *covers) pin(dir string) error {
	path := filepath.Join(stageRoot, dir)
	if c.pinned[dir] || !c.isGuests(filepath.Dir(path)) {
		return nil
	}
	c.pinned[dir] = true
	return bindAgain(path)
}

func bindAgain(path string) error {
	if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return &os.PathError{Op: "mount", Path: path, Err: err}
	}
	return nil
}

func (c *covers) mount(p Place) error {
	if _, isLink := c.links[p.Path]; isLink {
		return nil
	}
	path := filepath.Join(stageRoot, p.Path)
	switch at, isKept := c.kept[p.Path]; {
	case isKept:
		if err := unix.Mount(at, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return &os.PathError{Op: "mount", Path: p.Path, Err: err}
		}
	case c.spec.hides(p.Path):
		return c.hide(p)
	default:
		if err := bindAgain(path); err != nil {
			return err
		}
	}
	if err := c.spec.setFlags(p.Path); err != nil {
		return os.NewSyscallError("mount_setattr", err)
	}
	return nil
}

// hide mounts something empty, which has folders that lead to what is shown in it, and
// to a folder of the guest's, where a run may be about to start.
func (c *covers) hide(p Place) error {
	blank := filepath.Join(stageBlank, strings.ReplaceAll(p.Path[1:], "/", ":"))
	mode := os.FileMode(0)
	if c.spec.leads(p.Path) {
		mode = 0o711
	}
	if err := makeAs(blank, p.Tree, mode); err != nil {
		return err
	}
	if err := c.lead(p, blank); err != nil {
		return err
	}
	if err := unix.Mount(blank, filepath.Join(stageRoot, p.Path), "", unix.MS_BIND, ""); err != nil {
		return &os.PathError{Op: "mount", Path: p.Path, Err: err}
	}
	return nil
}

// lead fills what hides a place.
func (c *covers) lead(p Place, blank string) error {
	for _, d := range c.spec.Dirs {
		if isBelow(d, p.Path) && c.spec.hides(d) {
			if err := mkdirPassage(filepath.Join(blank, strings.TrimPrefix(d, p.Path))); err != nil {
				return err
			}
		}
	}
	for shown := range c.kept {
		if !isBelow(shown, p.Path) {
			continue
		}
		inside := filepath.Join(blank, strings.TrimPrefix(shown, p.Path))
		info, err := os.Lstat(filepath.Join(stageRoot, shown))
		if err == nil {
			err = errors.Join(mkdirPassage(filepath.Dir(inside)), makeAs(inside, info.IsDir(), 0o755))
		}
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	for shown, target := range c.links {
		if !isBelow(shown, p.Path) {
			continue
		}
		inside := filepath.Join(blank, strings.TrimPrefix(shown, p.Path))
		if err := errors.Join(mkdirPassage(filepath.Dir(inside)), os.Symlink(target, inside)); err != nil {
			return err
		}
	}
	return nil
}

// mkdirPassage makes folders that can be entered, and not listed.
func mkdirPassage(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	return errors.Join(mkdirPassage(filepath.Dir(path)), makeAs(path, true, 0o711))
}

// isBlank reports whether there is a placeholder.
func isBlank(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Perm() == 0 && info.Mode()&os.ModeSticky == 0 && info.Sys().(*syscall.Stat_t).Uid == 0
}
