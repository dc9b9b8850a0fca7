package rootfs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gaol/rootfs/debian"
	"gaol/rootfs/layer"
	"gaol/rootfs/programs"
	"gaol/rootfs/tree"
)

// buildSteps write the tree. Steps that need only the host run first, so that a problem
// there is found before anything is downloaded.
var buildSteps = []step[*build]{
	{"make a folder", (*build).makeTree},
	{"lay out", (*build).layOut},
	{"programs of the jail", (*build).addJailPrograms},
	{"copy time zones and CA certificates", (*build).copyHostFiles},
	{"Debian packages", (*build).installPackages},
	{"busybox", (*build).addBusybox},
	{"node", (*build).unpackNode},
	{"copy libraries", (*build).copyLibraries},
	{"check the zygote", (*build).checkZygote},
	{"npm", (*build).unpackNPM},
	{"seal", (*build).seal},
	{"store", (*build).commit},
}

// root returns the host path of the tree that is being made.
func (b *build) root() string { return b.temp.path(filepath.Join("image", imageRoot)) }

// makeTree makes an empty tree in a temporary folder.
func (b *build) makeTree(ctx context.Context) (err error) {
	if b.temp, err = b.store.makeTemp(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(b.root(), 0o755); err != nil {
		return err
	}
	b.tree, err = layer.Open(b.root(), b.limits)
	return err
}

// layOut makes the folders, the links between them, and the files in /etc.
func (b *build) layOut(context.Context) error {
	for _, dir := range folders {
		if err := b.tree.EnsureFolder(dir); err != nil {
			return err
		}
	}
	for _, l := range links {
		if err := b.tree.Symlink(l.path, l.target); err != nil {
			return err
		}
	}
	for _, f := range texts {
		if err := b.tree.WriteText(f.path, f.content); err != nil {
			return err
		}
	}
	return nil
}

// copyHostFiles adds files that Debian packages would add: CA certificates, and the host's time zones
// except its own (localtime) and the two rarely used copies of all zones.
func (b *build) copyHostFiles(context.Context) error {
	if b.plan.packages != nil {
		return nil
	}
	if err := b.tree.CopyFile(b.store.in.certs, debian.Certificates, 0o644); err != nil {
		return err
	}
	zones := os.DirFS(b.store.in.zoneinfo)
	return fs.WalkDir(zones, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := path.Join("/usr/share/zoneinfo", name)
		switch {
		case name == "posix" || name == "right":
			return fs.SkipDir
		case e.Type().IsRegular():
			return b.tree.CopyFile(filepath.Join(b.store.in.zoneinfo, name), to, 0o644)
		case e.Type() == fs.ModeSymlink && name != "localtime":
			target, err := fs.ReadLink(zones, name)
			if err != nil || filepath.IsAbs(target) { // an absolute link leads out of the zones
				return err
			}
			return b.tree.Symlink(to, target)
		}
		return nil
	})
}

// installPackages adds the Debian packages of the plan. Builds that use apt run one after
// the other.
func (b *build) installPackages(ctx context.Context) error {
	if b.plan.packages == nil {
		return nil
	}
	turn, err := lockWait(ctx, filepath.Join(b.store.locks(), "apt"))
	if err != nil {
		return err
	}
	defer turn.Close()
	b.image.Packages, err = debian.Install(ctx, b.tree, debian.Options{
		AptGet:   b.store.in.aptGet,
		DpkgDeb:  b.store.in.dpkgDeb,
		Keep:     filepath.Join(b.store.downloads(), "apt"),
		Temp:     b.temp.path("apt"),
		Packages: b.plan.packages,
		With:     b.plan.with,
		Have:     b.image.Packages,
		Report:   b.report,
	})
	return err
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
		if b.plan.packages != nil && b.isHeader(name) {
			return path.Join("/usr/local", name)
		}
		return "" // such as manuals
	})
	if err != nil {
		return err
	}
	return b.checkProgram(nodeBinary)
}

// isHeader reports whether a file of Node's package is needed to compile addons. The headers of
// OpenSSL for all processors take 59 MB.
func (b *build) isHeader(name string) bool {
	_, arch, perArch := strings.Cut(name, "/openssl/archs/")
	wanted := map[string]string{"x64": "linux-x86_64/", "arm64": "linux-aarch64/"}[b.store.in.arch]
	return strings.HasPrefix(name, "include/node/") && (!perArch || strings.HasPrefix(arch, wanted))
}

// checkProgram returns an error unless p is a regular file that everyone may execute.
func (b *build) checkProgram(p string) error {
	f, err := b.tree.OpenFile(p)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Mode() != 0o755 {
		err = fmt.Errorf("%s is not executable", p)
	}
	return err
}

const npmFolder = "/usr/local/lib/node_modules/npm"

// nodeGyp is the program node-gyp in npm's PATH of scripts. nodeGypScript replaces it in images with Node's headers: it
// passes their folder as the first option. Without that, node-gyp downloads headers.
const (
	nodeGyp       = npmFolder + "/node_modules/@npmcli/run-script/lib/node-gyp-bin/node-gyp"
	nodeGypScript = "#!/bin/sh\nexec node \"$npm_config_node_gyp\" --nodedir=/usr/local \"$@\"\n"
)

// npmrc is npm's own configuration. npm install -g writes to a folder of the guest, whose bin is in
// PATH. The prefix moves the file of all users, too, so that everything must be in this one. Without
// a rule for the registry, a check for a newer npm would only delay commands, and two more attempts to
// reach it would take 70 seconds.
const npmrc = "prefix=${HOME}/.local\nupdate-notifier=false\nfetch-retries=0\n"

func (b *build) unpackNPM(ctx context.Context) error {
	err := b.unpack(ctx, b.plan.npm, func(name string) string { return path.Join(npmFolder, name) })
	if err != nil {
		return err
	}
	if err := b.tree.WriteText(path.Join(npmFolder, "npmrc"), npmrc); err != nil {
		return err
	}
	if b.plan.packages != nil {
		if err := b.tree.WriteFile(nodeGyp, 0o755, strings.NewReader(nodeGypScript)); err != nil {
			return err
		}
	}
	for _, name := range []string{"npm", "npx"} {
		script := "bin/" + name + "-cli.js"
		if err := b.checkProgram(path.Join(npmFolder, script)); err != nil {
			return err
		}
		if err := b.tree.Symlink("/usr/local/bin/"+name, "../lib/node_modules/npm/"+script); err != nil {
			return err
		}
	}
	return nil
}

// unpack downloads an npm package, checks its hash and unpacks it.
func (b *build) unpack(ctx context.Context, p npmPackage, place func(string) string) error {
	f, err := b.npm.Tarball(ctx, p, b.store.downloads(), b.temp.dir, b.report)
	if err != nil {
		return err
	}
	defer f.Close()
	b.report.Line("unpack %s", p)
	if err := unpackPackage(ctx, f, b.tree, place); err != nil {
		return fmt.Errorf("unpack %s: %w", p, err)
	}
	return nil
}

// copyLibraries copies the libraries that Node needs from the host, unless Debian packages have them. All
// go beside libc, into a folder that the loader searches without a cache. The loader goes to the path that
// Node names.
func (b *build) copyLibraries(ctx context.Context) error {
	if b.plan.packages != nil {
		return nil
	}
	loader, libraries, err := programs.FindLibraries(ctx, b.tree.HostPath(nodeBinary))
	if err != nil || loader == "" {
		return err
	}
	if err := b.tree.CopyFile(loader, mergedUsr(loader), 0o755); err != nil {
		return err
	}
	at := slices.IndexFunc(libraries, func(file string) bool { return path.Base(file) == "libc.so.6" })
	if at < 0 {
		return fmt.Errorf("node is not linked to libc.so.6: %w", ErrUnsupported)
	}
	folder := mergedUsr(path.Dir(libraries[at]))
	for _, file := range libraries {
		if to := path.Join(folder, path.Base(file)); !b.tree.Has(to) {
			if err := b.tree.CopyFile(file, to, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// mergedUsr turns a host path into a path of the image, in which /lib is a link to /usr/lib.
func mergedUsr(p string) string { return path.Join("/usr", strings.TrimPrefix(p, "/usr/")) }

// seal fixes the tree and computes the id.
func (b *build) seal(context.Context) error {
	b.image.Arch = b.store.in.arch
	return b.sum(tree.Seal)
}

// sum computes the id and the size of the image by a function of package tree, and writes the
// list of its files.
func (b *build) sum(sum func(root string, list io.Writer) (id string, size int64, err error)) (err error) {
	// Only for root: in a snapshot, files that others can't read have names and hashes too.
	f, err := os.OpenFile(b.temp.path(filepath.Join("image", imageList)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	list := bufio.NewWriter(f)
	id, size, err := sum(b.root(), list)
	if err = errors.Join(err, list.Flush(), f.Close()); err != nil {
		return err
	}
	b.image.Size = size
	b.image.ID, err = b.image.mixID(id)
	return err
}

// commit moves the image into the store.
func (b *build) commit(ctx context.Context) error {
	i, err := b.store.commit(ctx, b.temp, &b.image, b.plan.names)
	if err != nil {
		return err
	}
	b.image = *i
	b.report.Line("stored %s (%.0f MB) %s", i.ID, float64(i.Size)/1e6, strings.Join(i.Names, " "))
	return nil
}
