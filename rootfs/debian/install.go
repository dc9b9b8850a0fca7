package debian

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"slices"
	"strings"

	"gaol/rootfs/download"
	"gaol/rootfs/layer"
	"gaol/rootfs/tree"
)

// Options say which packages to install and where.
type Options struct {
	AptGet, DpkgDeb string // host paths of the programs
	Keep            string // folder for lists and packages, kept for later builds
	Temp            string // folder for temporary files, made if missing
	Packages        []string
	Report          *download.Reporter
}

// debLimits leave room: libc6 has 500 entries and 13 MB.
var debLimits = layer.Limits{Entries: 50_000, Bytes: 1 << 30}

var errArchive = errors.New("archive refused")

// Install adds the packages and their dependencies to the tree, and returns them sorted by
// name.
//
// Precondition: no other process uses the folder Keep.
func Install(ctx context.Context, t *tree.Tree, o Options) ([]Package, error) {
	a, err := newApt(o)
	if err != nil {
		return nil, err
	}
	debs, err := a.resolve(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.download(ctx, debs); err != nil {
		return nil, err
	}
	o.Report.Line("unpack %d Debian packages", len(debs))
	for _, p := range debs {
		if err := a.unpack(ctx, t, p); err != nil {
			return nil, fmt.Errorf("%s %s: %w", p.Name, p.Version, err)
		}
	}
	return debs, finish(t)
}

// unpack adds the files of one package, which dpkg-deb decompresses.
func (a *apt) unpack(ctx context.Context, t *tree.Tree, p Package) error {
	f, err := a.open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	cmd := exec.CommandContext(ctx, a.o.DpkgDeb, "--fsys-tarfile", "-")
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = f, &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = layer.EachEntry(ctx, out, debLimits, func(h *tar.Header, content io.Reader) error { return addEntry(t, p.Name, h, content) })
	_, _ = io.Copy(io.Discard, out) // after an error, dpkg-deb must not block on the pipe
	if failed := cmd.Wait(); failed != nil && err == nil {
		message, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		err = fmt.Errorf("dpkg-deb: %w: %s", failed, message)
	}
	return err
}

// addEntry adds one entry of the package name. Of its mode, it keeps only whether a file is
// executable, so set-id bits are dropped.
func addEntry(t *tree.Tree, name string, h *tar.Header, content io.Reader) error {
	p, err := imagePath(h.Name)
	if err != nil || p == "/" || isLeftOut(name, p) {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return t.Mkdir(p)
	case tar.TypeSymlink:
		return t.Symlink(p, h.Linkname)
	case tar.TypeLink:
		target, err := imagePath(h.Linkname)
		if err != nil {
			return err
		}
		return t.Link(p, target)
	case tar.TypeReg:
		return addFile(t, p, h.Mode, content)
	}
	return fmt.Errorf("%w: %q is of type %q", errArchive, h.Name, h.Typeflag)
}

func addFile(t *tree.Tree, p string, mode int64, content io.Reader) error {
	r := bufio.NewReader(content)
	head, _ := r.Peek(32) // longer than all of scriptsLeftOut; WriteFile meets the same error
	if slices.ContainsFunc(scriptsLeftOut, func(s string) bool { return bytes.HasPrefix(head, []byte(s)) }) {
		return nil
	}
	return t.WriteFile(p, layer.FileMode(mode), r)
}

// imagePath turns the name of an entry into a path of the image, whose /usr is merged.
func imagePath(name string) (string, error) {
	name = strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
	if name == "" || name == "." {
		return "/", nil
	}
	if !fs.ValidPath(name) || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("%w: path %q", errArchive, name)
	}
	top, _, _ := strings.Cut(name, "/")
	if slices.Contains([]string{"bin", "sbin", "lib", "lib64"}, top) {
		name = "usr/" + name
	}
	return "/" + name, nil
}

// finish does the work of maintainer scripts that an image needs.
func finish(t *tree.Tree) error {
	if err := bundleCertificates(t); err != nil {
		return err
	}
	for _, l := range packageLinks {
		if t.Has(l.path) || !t.Has(path.Join(path.Dir(l.path), l.target)) {
			continue
		}
		if err := t.Symlink(l.path, l.target); err != nil {
			return err
		}
	}
	return nil
}

// Certificates is the path of the CA certificates in an image.
const Certificates = "/etc/ssl/certs/ca-certificates.crt"

// bundleCertificates joins the files of ca-certificates into the one that programs read.
func bundleCertificates(t *tree.Tree) error {
	var bundle strings.Builder
	err := fs.WalkDir(t.FS(), "usr/share/ca-certificates", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || path.Ext(p) != ".crt" {
			return err
		}
		text, err := fs.ReadFile(t.FS(), p)
		bundle.Write(bytes.TrimRight(text, "\n"))
		bundle.WriteString("\n")
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, t.WriteText(Certificates, bundle.String()))
}
