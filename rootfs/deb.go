package rootfs

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// debBounds leaves room: libc6 has 500 entries and 13 MB.
var debBounds = bounds{entries: 50_000, bytes: 1 << 30}

// unpackPackages adds the Debian packages of the plan, and does what matters of the
// work of their maintainer scripts, none of which is ever run.
func (b *build) unpackPackages(ctx context.Context) error {
	if b.plan.packages == nil {
		return nil
	}
	turn, err := b.lockApt(ctx)
	if err != nil {
		return err
	}
	defer turn.Close()
	a, err := b.apt()
	if err != nil {
		return err
	}
	if b.debs, err = a.resolve(ctx, b.plan.packages, b.report); err != nil {
		return err
	}
	if err := a.fetch(ctx, b.plan.packages, b.debs, b.report); err != nil {
		return err
	}
	b.report.line("unpack %d Debian packages", len(b.debs))
	for _, p := range b.debs {
		if err := b.unpackDeb(ctx, a, p); err != nil {
			return fmt.Errorf("%s %s: %w", p.Name, p.Version, err)
		}
	}
	return b.finishPackages()
}

// unpackDeb adds the files of one package, which dpkg-deb decompresses.
func (b *build) unpackDeb(ctx context.Context, a *apt, p Package) error {
	f, err := a.open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	cmd := exec.CommandContext(ctx, b.store.in.dpkgDeb, "--fsys-tarfile", "-")
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = f, &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = debBounds.each(ctx, out, b.debEntry)
	_, _ = io.Copy(io.Discard, out) // the archive's padding; after an error dpkg-deb must not wait
	if ended := cmd.Wait(); ended != nil && err == nil {
		err = fmt.Errorf("dpkg-deb: %w: %s", ended, firstError(stderr.String()))
	}
	return err
}

// debEntry adds one entry of a package. Set-id bits are dropped, as all modes are but
// for whether a file can be executed.
func (b *build) debEntry(h *tar.Header, content io.Reader) error {
	p, err := debPath(h.Name)
	if err != nil || p == "/" || isLeftOut(p) {
		return err
	}
	switch h.Typeflag {
	case tar.TypeXGlobalHeader:
		return nil
	case tar.TypeDir:
		return b.tree.dir(p)
	case tar.TypeSymlink:
		return b.tree.link(p, h.Linkname)
	case tar.TypeLink:
		target, err := debPath(h.Linkname)
		if err != nil {
			return err
		}
		return b.tree.hardLink(p, target)
	case tar.TypeReg:
		return b.debFile(p, h.Mode, content)
	}
	return fmt.Errorf("%w: %q is of type %q", errArchive, h.Name, h.Typeflag)
}

func (b *build) debFile(p string, mode int64, content io.Reader) error {
	r := bufio.NewReader(content)
	head, _ := r.Peek(32) // an error shows when the file is read
	if slices.ContainsFunc(scriptsLeftOut, func(s string) bool { return bytes.HasPrefix(head, []byte(s)) }) {
		return nil
	}
	perm := fs.FileMode(0o644)
	if mode&0o111 != 0 {
		perm = 0o755
	}
	return b.tree.file(p, perm, r)
}

// debPath turns the name of a package's entry into a path of the image, whose /usr is merged.
func debPath(name string) (string, error) {
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

// finishPackages makes what maintainer scripts would.
func (b *build) finishPackages() error {
	if err := b.bundleCertificates(); err != nil {
		return err
	}
	for _, l := range packageLinks {
		if b.tree.has(l.path) || !b.tree.has(path.Join(path.Dir(l.path), l.target)) {
			continue
		}
		if err := b.tree.link(l.path, l.target); err != nil {
			return err
		}
	}
	return nil
}

const certificateFolder = "usr/share/ca-certificates"

// bundleCertificates makes of ca-certificates' files the one that programs read.
func (b *build) bundleCertificates() error {
	var bundle strings.Builder
	err := fs.WalkDir(b.tree.root.FS(), certificateFolder, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(p) != ".crt" {
			return err
		}
		text, err := b.tree.root.ReadFile(p)
		bundle.Write(bytes.TrimRight(text, "\n"))
		bundle.WriteString("\n")
		return err
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return errors.Join(err, b.tree.text("/etc/ssl/certs/ca-certificates.crt", bundle.String()))
}
