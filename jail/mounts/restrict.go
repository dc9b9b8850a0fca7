package mounts

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

// restrict creates the tree's places, and mounts over places to hide or restrict them in
// folders of the guest or the image. Missing places are created, so that the guest can't
// create them.
//
// A mount stays on its folder, which the guest could rename to put another in its place.
// So guest folders that lead to a mount are mounted on themselves: the kernel does not
// rename or remove mount points. The price is that nothing can be renamed or linked from
// there to other folders (EXDEV).
func (s *Stage) restrict() error {
	r := &restricter{
		builder: newBuilder(s),
		pinned:  map[string]bool{}, shown: map[string]string{}, links: map[string]string{},
	}
	// Places are created before anything is hidden or read-only: afterwards they could not.
	for _, p := range s.tree.Make {
		if err := r.createOwned(p); err != nil {
			return err
		}
	}
	for _, p := range s.tree.Keep {
		if err := r.create(p, nil); err != nil {
			return err
		}
	}
	for _, f := range s.tree.Files {
		if err := r.write(f); err != nil {
			return err
		}
	}
	r.findExposed()
	places := r.places()
	for _, p := range places {
		if err := r.prepare(p); err != nil {
			return err
		}
	}
	for _, path := range s.tree.Pinned {
		if err := r.pin(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for _, p := range places {
		if err := r.mount(p); err != nil {
			return err
		}
	}
	return nil
}

// A restricter makes the mounts that hide or restrict places.
type restricter struct {
	*builder
	pinned  map[string]bool
	shown   map[string]string // shown places, and where they are mounted meanwhile
	links   map[string]string // shown symbolic links, and their targets
	exposed []Place           // see findExposed
}

// places returns the places that need a mount, outer ones first.
func (r *restricter) places() []Place {
	var list []Place
	for _, p := range slices.Concat(r.tree.Hide, r.tree.Show, r.flagged()) {
		if p.Path != "/" && !slices.ContainsFunc(list, func(q Place) bool { return q.Path == p.Path }) && r.needsMount(p) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b Place) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// flagged returns the places with other mount flags than the folders around them.
func (r *restricter) flagged() []Place {
	var list []Place
	if len(r.tree.ReadOnly) > 0 {
		list = slices.Concat(r.tree.ReadOnly, r.tree.Writable)
	}
	if len(r.tree.NoExec) > 0 {
		list = slices.Concat(list, r.tree.NoExec, r.tree.Exec)
	}
	return list
}

// findExposed adds to the hidden places the mounts and files that were created in a hidden
// root after fillRoot had omitted them. For each it hides the outermost hidden guest folder,
// mount or new folder that contains it.
func (r *restricter) findExposed() {
	t := &r.tree
	if !t.hides("/") {
		return
	}
	var paths []string
	for _, m := range t.Mounts {
		paths = append(paths, m.Target)
	}
	tops := slices.Sorted(slices.Values(slices.Concat(t.Dirs, paths))) // outer ones first
	for _, f := range t.Files {
		paths = append(paths, f.Path)
	}
	for _, path := range paths {
		if !t.hides(path) {
			continue
		}
		top := r.outermost(path, tops)
		info, err := os.Lstat(filepath.Join(Root, top))
		if p := (Place{top, err == nil && info.IsDir()}); err == nil && !slices.Contains(r.exposed, p) {
			r.exposed = append(r.exposed, p)
		}
	}
	t.Hide = slices.Concat(t.Hide, r.exposed)
}

// outermost returns the hidden folder or mount that contains path and is not in another one:
// hiding it hides the whole, with one mount.
func (r *restricter) outermost(path string, tops []string) string {
	for _, dir := range tops {
		if isIn(path, dir) && r.tree.hides(dir) {
			return dir
		}
	}
	top := path
	for dir := filepath.Dir(path); r.tree.hides(dir) && isMissing(filepath.Join(overlayDir, dir)); dir = filepath.Dir(dir) {
		top = dir
	}
	return top
}

func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}

// needsMount reports whether a place needs a mount: fillRoot has hidden some already.
func (r *restricter) needsMount(p Place) bool {
	above := r.tree.hides(filepath.Dir(p.Path))
	switch {
	case slices.Contains(r.exposed, p):
		return true
	case slices.Contains(r.tree.Hide, p):
		return !above && !isPlaceholder(filepath.Join(Root, p.Path))
	case above && slices.Contains(r.tree.Show, p) && r.isBelowHiding(p.Path):
		return true
	}
	return slices.Contains(r.flagged(), p) && !r.tree.hides(p.Path)
}

// isBelowHiding reports whether a mount hides the innermost hidden place above path.
func (r *restricter) isBelowHiding(path string) bool {
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if p := (Place{dir, true}); slices.Contains(r.tree.Hide, p) {
			return r.needsMount(p)
		}
	}
	return false
}

// prepare creates a place if it is missing, pins the folders above it, and keeps a mount
// of it if it has to be shown again.
func (r *restricter) prepare(p Place) error {
	isShown := slices.Contains(r.tree.Show, p)
	if target, err := os.Readlink(filepath.Join(Root, p.Path)); err == nil && !p.Tree && isShown {
		r.links[p.Path] = target // created again where it is shown: links can't be mounted
		return nil
	}
	if err := r.create(p, nil); err != nil {
		return err
	}
	if err := r.pin(filepath.Dir(p.Path)); err != nil || !isShown {
		return err
	}
	at := filepath.Join(shownDir, strconv.Itoa(len(r.shown)))
	r.shown[p.Path] = at
	return errors.Join(makeEmpty(at, p.Tree, 0o755), bind(filepath.Join(Root, p.Path), at))
}

// pin mounts a path, and the folders above it, on themselves where the guest could rename
// them. If some are missing, it pins the others and returns an error.
func (r *restricter) pin(path string) (missing error) {
	for ; path != "/"; path = filepath.Dir(path) {
		at := filepath.Join(Root, path)
		var above unix.Stat_t
		if r.pinned[path] || unix.Lstat(filepath.Dir(at), &above) != nil || !r.guestCanChange(&above) {
			continue
		}
		r.pinned[path] = true
		if err := bind(at, at); errors.Is(err, os.ErrNotExist) {
			missing = err
		} else if err != nil {
			return err
		}
	}
	return missing
}

// mount makes the mount that shows, hides or restricts a place.
func (r *restricter) mount(p Place) error {
	if _, isLink := r.links[p.Path]; isLink {
		return nil
	}
	path := filepath.Join(Root, p.Path)
	source, isShown := r.shown[p.Path]
	switch {
	case isShown:
	case r.tree.hides(p.Path):
		return r.hide(p)
	default:
		source = path
	}
	if err := bind(source, path); err != nil {
		return err
	}
	return r.tree.setFlags(p.Path)
}

// hide mounts an empty file or folder without permissions over a place. The folder contains
// only the folders that lead to shown places and to guest folders, where a run may be about to
// start.
func (r *restricter) hide(p Place) error {
	empty := filepath.Join(hiddenDir, strings.ReplaceAll(p.Path[1:], "/", ":"))
	mode := os.FileMode(0)
	if r.tree.leadsToShown(p.Path) {
		mode = passageMode
	}
	if err := makeEmpty(empty, p.Tree, mode); err != nil {
		return err
	}
	if err := r.addPassages(p, empty); err != nil {
		return err
	}
	return bind(empty, filepath.Join(Root, p.Path))
}

const passageMode = 0o711 // of folders that the guest can enter, and not list

// addPassages creates the mount points of shown places, the shown links, and the folders
// that lead to them, in a folder that hides a place.
func (r *restricter) addPassages(p Place, dir string) (err error) {
	add := func(path string, create func(at string) error) {
		if err != nil || !isBelow(path, p.Path) {
			return
		}
		at := filepath.Join(dir, strings.TrimPrefix(path, p.Path))
		if err = mkdirAll(filepath.Dir(at), passageMode, 0); err == nil {
			err = create(at)
		}
	}
	for _, path := range r.tree.Dirs {
		if r.tree.hides(path) {
			add(path, func(at string) error { return mkdirAll(at, passageMode, 0) })
		}
	}
	for path := range r.shown {
		add(path, func(at string) error {
			info, err := os.Lstat(filepath.Join(Root, path))
			if err != nil {
				return err
			}
			if err = makeEmpty(at, info.IsDir(), 0o755); errors.Is(err, os.ErrExist) {
				return nil
			}
			return err
		})
	}
	for path, target := range r.links {
		add(path, func(at string) error { return os.Symlink(target, at) })
	}
	return err
}

// isPlaceholder reports whether fillRoot has hidden the path.
func isPlaceholder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Perm() == 0 && info.Mode()&os.ModeSticky == 0 && info.Sys().(*syscall.Stat_t).Uid == 0
}
