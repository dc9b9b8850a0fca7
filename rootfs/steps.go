package rootfs

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gaol/jail/enter"
	"gaol/jail/zygote"
)

// steps make the tree. What needs only the host comes first: what is wrong
// there is found before anything is fetched.
var steps = []struct {
	name string
	run  func(*build, context.Context) error
}{
	{"lay out", (*build).layOut},
	{"compile the entry program", (*build).compileEnter},
	{"compile the zygote", (*build).compileZygote},
	{"copy catatonit", (*build).copyReaper},
	{"copy time zones", (*build).copyZones},
	{"copy CA certificates", (*build).copyCertificates},
	{"Debian packages", (*build).unpackPackages},
	{"copy busybox", (*build).copyBusybox},
	{"node", (*build).unpackNode},
	{"copy libraries", (*build).copyLibraries},
	{"npm", (*build).unpackNPM},
}

// newImageTree makes an image's folder, with an empty tree in it.
func newImageTree(dir string) (*tree, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	return newTree(filepath.Join(dir, imageRoot))
}

// layOut makes the folders, the links between them, and what is in /etc.
func (b *build) layOut(context.Context) error {
	for _, dir := range folders {
		if err := b.tree.dir(dir); err != nil {
			return err
		}
	}
	for _, l := range links {
		if err := b.tree.link(l.path, l.target); err != nil {
			return err
		}
	}
	for _, f := range texts {
		if err := b.tree.text(f.path, f.content); err != nil {
			return err
		}
	}
	return nil
}

// compileEnter adds the program that puts the filter on a process of a jail.
//
// It may be executed, not read: the kernel keeps a process that executes such a
// file non-dumpable, whatever its user. Guests share one uid, and could
// otherwise ptrace it, or open its memory and file descriptors below /proc,
// before its filter is in place.
func (b *build) compileEnter(ctx context.Context) error {
	out := b.scratch.path("enter")
	if err := compileProgram(ctx, b.store.in.enter, out); err != nil {
		return err
	}
	return b.tree.copy(out, enter.Path, 0o711)
}

// compileZygote adds what makes Node one that forks.
func (b *build) compileZygote(ctx context.Context) error {
	out := b.scratch.path("zygote.so")
	if err := compileLibrary(ctx, b.store.in.zygote, out); err != nil {
		return err
	}
	return b.tree.copy(out, zygote.Path, 0o644)
}

func (b *build) copyBusybox(ctx context.Context) error {
	list, err := exec.CommandContext(ctx, b.store.in.busybox, "--list").Output()
	if err != nil {
		return fmt.Errorf("%s --list: %w", b.store.in.busybox, err)
	}
	chosen, err := chooseApplets(string(list))
	if err != nil {
		return err
	}
	for _, name := range chosen {
		if p := "/usr/bin/" + name; !b.tree.has(p) { // a package may have a better one
			if err := b.tree.link(p, "busybox"); err != nil {
				return err
			}
		}
	}
	return b.tree.copy(b.store.in.busybox, "/usr/bin/busybox", 0o755)
}

func (b *build) copyReaper(context.Context) error {
	return b.tree.copy(b.store.in.reaper, enter.Reaper, 0o755)
}

func (b *build) copyCertificates(context.Context) error {
	if b.plan.packages != nil {
		return nil
	}
	return b.tree.copy(b.store.in.certs, "/etc/ssl/certs/ca-certificates.crt", 0o644)
}

// copyZones copies the time zones, but for the host's own (localtime) and the
// two further copies of everything that hardly anybody reads.
func (b *build) copyZones(context.Context) error {
	if b.plan.packages != nil {
		return nil
	}
	from := b.store.in.zoneinfo
	return filepath.WalkDir(from, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		to := path.Join("/usr/share/zoneinfo", name)
		switch {
		case name == "posix" || name == "right":
			return fs.SkipDir
		case e.Type().IsRegular():
			return b.tree.copy(file, to, 0o644)
		case e.Type() == fs.ModeSymlink && name != "localtime":
			return b.copyLink(file, to)
		}
		return nil
	})
}

// copyLink copies a link that stays in its folder; others are followed no more.
func (b *build) copyLink(file, to string) error {
	target, err := os.Readlink(file)
	if err != nil || filepath.IsAbs(target) {
		return err
	}
	return b.tree.link(to, target)
}

const nodeBinary = "/usr/local/bin/node"

func (b *build) unpackNode(ctx context.Context) error {
	err := b.unpack(ctx, b.plan.node, func(name string) string {
		switch name {
		case "bin/node":
			return nodeBinary
		case "LICENSE":
			return "/usr/local/share/doc/node/LICENSE"
		}
		return "" // headers and manuals, which are a third of the package
	})
	if err != nil {
		return err
	}
	return b.expect(nodeBinary)
}

const npmFolder = "/usr/local/lib/node_modules/npm"

func (b *build) unpackNPM(ctx context.Context) error {
	err := b.unpack(ctx, b.plan.npm, func(name string) string { return path.Join(npmFolder, name) })
	if err != nil {
		return err
	}
	for _, name := range []string{"npm", "npx"} {
		script := "bin/" + name + "-cli.js"
		if err := b.expect(path.Join(npmFolder, script)); err != nil {
			return err
		}
		if err := b.tree.link("/usr/local/bin/"+name, "../lib/node_modules/npm/"+script); err != nil {
			return err
		}
	}
	return nil
}

// unpack fetches a package, checks it, and only then opens it.
func (b *build) unpack(ctx context.Context, p pkg, place func(string) string) error {
	f, err := b.tarball(ctx, p)
	if err != nil {
		return err
	}
	defer f.Close()
	b.report.line("unpack %s", p)
	u := unpacker{tree: b.tree, bounds: packageBounds, place: place}
	if err := u.unpack(ctx, f); err != nil {
		return fmt.Errorf("unpack %s: %w", p, err)
	}
	return nil
}

// expect says whether an executable file of a package is where it should be.
func (b *build) expect(p string) error {
	info, err := b.tree.root.Lstat(local(p))
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm() != 0o755 {
		return fmt.Errorf("%s is not an executable file", p)
	}
	return nil
}

// copyLibraries copies what node needs to start from the host, unless packages
// have brought it. All libraries go
// beside libc, into a folder that its loader is certain to search without a
// cache; the loader itself goes where node says that it is.
func (b *build) copyLibraries(context.Context) error {
	if b.plan.packages != nil {
		return b.checkLibraries()
	}
	dirs, err := libraryDirs("/etc/ld.so.conf")
	if err != nil {
		return err
	}
	c, err := closureOf(filepath.Join(b.tree.root.Name(), nodeBinary), dirs)
	if err != nil || c.loader == "" {
		return err
	}
	if err := b.tree.copy(c.loader, merged(c.loader), 0o755); err != nil {
		return err
	}
	libc := c.libs["libc.so.6"]
	if libc == "" {
		return fmt.Errorf("node is not linked to libc.so.6: %w", ErrUnsupported)
	}
	folder := merged(filepath.Dir(libc))
	for _, name := range slices.Sorted(maps.Keys(c.libs)) {
		if err := b.tree.copy(c.libs[name], path.Join(folder, name), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// checkLibraries fails if the tree lacks a library that node needs.
func (b *build) checkLibraries() error {
	var dirs []string
	for _, dir := range libraryFolders {
		dirs = append(dirs, filepath.Join(b.tree.root.Name(), dir))
	}
	c, err := closureOf(filepath.Join(b.tree.root.Name(), nodeBinary), dirs)
	if err == nil && c.loader != "" && !b.tree.has(c.loader) {
		err = fmt.Errorf("%s: %w", c.loader, fs.ErrNotExist)
	}
	return err
}

// merged turns a path of any host into one of the image, whose /usr is merged.
func merged(p string) string {
	if strings.HasPrefix(p, "/usr/") {
		return p
	}
	return path.Join("/usr", p)
}
